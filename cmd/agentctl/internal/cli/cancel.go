package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

type cancelOptions struct{ target }

func (a *app) cancelCmd() *cobra.Command {
	o := &cancelOptions{target: target{app: a}}
	cmd := &cobra.Command{
		Use:   "cancel run/NAME",
		Short: "Ask a run of a control plane to stop",
		Long: `Ask a run of a control plane to stop. Its tools are ended, and its state says
Cancelled; to ask twice is to ask once. "agentctl attach" watches how it ends.

A run in another terminal is stopped there, by Ctrl-C.

Exit code 1: there is no such run, or it has ended already.`,
		Example:           `  agentctl cancel run/review-7xk2p`,
		GroupID:           groupRun,
		Args:              oneArg("the run (run/NAME)"),
		ValidArgsFunction: a.completeRunObjects,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runCancel(cmd.Context(), args[0]) },
	}
	o.flags(cmd)
	return cmd
}

func (o *cancelOptions) runCancel(ctx context.Context, word string) error {
	src, err := o.seek(ctx, word, true)
	if err != nil {
		return err
	}
	defer src.close()
	if src.client == nil {
		return usagef("run/%s is none of a control plane: Ctrl-C stops it in the terminal where it runs", src.name())
	}
	if _, err := src.client.Cancel(ctx, src.run); err != nil {
		return err
	}
	return display.Text(o.app.stdout(), src.run.String()+" cancelled\n")
}
