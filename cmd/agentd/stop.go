package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/runner/control/embedded"
)

func (a *app) stopCmd() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the agentd of a state folder",
		Long: `Stop the agentd of a state folder, also one that agentctl has started in the
background, and wait until it has ended. Runs in progress are interrupted;
the next agentd of the same state folder continues them.

Exit code 0: it has ended, or none was running. 1: it has not ended in time.`,
		Args:              exactly(0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.runStop(cmd.Context(), timeout) },
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait at most")
	return cmd
}

func (a *app) runStop(ctx context.Context, timeout time.Duration) error {
	if timeout <= 0 {
		return usagef("--timeout must be longer than 0")
	}
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	late := errors.New("it has not ended within " + timeout.String())
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	pid, err := embedded.StopRunning(ctx, state)
	switch {
	case errors.Is(err, embedded.ErrNotRunning):
		_, err = fmt.Fprintf(a.Out, "no agentd runs in %s\n", state)
	case err == nil:
		_, err = fmt.Fprintf(a.Out, "stopped the agentd of %s (process %d)\n", state, pid)
	}
	return err
}
