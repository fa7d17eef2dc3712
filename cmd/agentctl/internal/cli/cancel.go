package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/runs"
)

type cancelOptions struct{ target }

func (a *app) cancelCmd() *cobra.Command {
	o := &cancelOptions{target: target{app: a}}
	cmd := &cobra.Command{
		Use:   "cancel run/NAME",
		Short: "Ask a run to stop",
		Long: `Ask a run to stop, of a control plane or of another terminal, as Ctrl-C does there.
Its tools are ended, and its state becomes Cancelled. A second request has no
effect. "agentctl attach" watches how the run ends.

Exit code 1: it has ended already, or the control plane has no such run.
2: no run of this name is in progress.`,
		Example: `  agentctl cancel run/review-7xk2p
  agentctl cancel @latest`,
		GroupID:           groupRun,
		Args:              oneArg("the run (run/NAME)"),
		ValidArgsFunction: a.completeGoing,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runCancel(cmd.Context(), args[0]) },
	}
	o.flags(cmd)
	return cmd
}

func (o *cancelOptions) runCancel(ctx context.Context, word string) error {
	src, err := o.locateWord(ctx, word)
	if err != nil {
		return o.only(ctx, word, err)
	}
	if src.client == nil {
		// Of two processes that execute a run, the one of a control plane is asked by
		// the object: it would begin another attempt of a run that was only stopped.
		if owner := o.owner(ctx, src.id); owner != nil {
			src = owner
		}
	}
	defer src.close()
	if src.client == nil {
		id, err := runs.Cancel(src.state, src.ref)
		if name, ok := objectOf(id); ok && err != nil {
			return (&reason.UsageError{Err: err}).WithHint("it is one of a control plane: agentctl cancel run/" + name)
		}
		if err != nil {
			return err
		}
		return display.Text(o.app.stdout(), "run/"+id+" cancelled\n")
	}
	if _, err := src.client.Cancel(ctx, src.run); err != nil {
		return err
	}
	return display.Text(o.app.stdout(), src.run.String()+" cancelled\n")
}
