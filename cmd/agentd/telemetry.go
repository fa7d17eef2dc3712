package main

import (
	"context"
	"log/slog"

	"agentctl.dev/agentctl/runner/telemetry"
)

// withoutCaller leaves out the span of the program that started this one: the runs of a
// server are not part of it.
func withoutCaller(getenv func(string) string) func(string) string {
	return func(name string) string {
		if name == "TRACEPARENT" || name == "TRACESTATE" {
			return ""
		}
		return getenv(name)
	}
}

// closeTelemetry sends what is left, and logs what could not be sent.
func closeTelemetry(c *telemetry.Client, log *slog.Logger) {
	for _, text := range c.Close(context.Background()) {
		log.Warn(text)
	}
}
