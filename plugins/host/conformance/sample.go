package conformance

import (
	"context"
	"fmt"

	"agentctl.dev/agentctl/plugins/host"
)

// sampleChecks are the promises of the author's own tools.
func sampleChecks(o Options) []check {
	var checks []check
	for _, s := range o.Good {
		checks = append(checks, check{
			name: "call of " + s.Tool, promise: "the call " + brief(string(s.Args)) + " is answered without an error",
			fix: "see what the tool says, or fix the arguments of the test", try: func(ctx context.Context, t *trial) error { return good(ctx, t, s) },
		})
	}
	for _, s := range o.Slow {
		checks = append(checks, check{
			name: "deadline of " + s.Tool, promise: "the call " + brief(string(s.Args)) + " ends at its deadline with code timeout",
			fix: "hand the context of the call, or its deadline, to everything the tool waits for", attempts: 2, try: func(ctx context.Context, t *trial) error { return deadline(ctx, t, s, "") },
		}, check{
			name: "cancel of " + s.Tool, promise: "the call " + brief(string(s.Args)) + " ends when it is cancelled",
			fix: "hand the context of the call, or its cancellation, to everything the tool waits for", attempts: 2, try: func(ctx context.Context, t *trial) error { return cancel(ctx, t, s) },
		})
	}
	return checks
}

func good(ctx context.Context, t *trial, s Sample) error {
	return t.with(ctx, func(p *host.Plugin) error {
		res, err := t.call(ctx, p, s.Tool, string(s.Args))
		if err != nil {
			return err
		}
		if res.IsError {
			return fmt.Errorf("code %q: %s", res.Code, brief(res.Text))
		}
		return nil
	})
}
