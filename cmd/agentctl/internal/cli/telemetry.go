package cli

import (
	"context"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/telemetry"
)

// openTelemetry returns what sends spans and metrics of runs to the collector that the
// environment names; nil where it names none.
func (a *app) openTelemetry() *telemetry.Client {
	return telemetry.Open(telemetry.Options{Getenv: a.getenv, Version: readVersion().Version})
}

// closeTelemetry sends what is left, and shows what could not be sent. It changes no exit
// code, and waits neither for a collector nor for the reader of stderr.
func (a *app) closeTelemetry(ctx context.Context, c *telemetry.Client) {
	for _, text := range c.Close(context.WithoutCancel(ctx)) {
		briefly(func() { display.Warning(a.stderr(), text) })
	}
}
