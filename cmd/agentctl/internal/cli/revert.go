package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/runs"
)

type revertOptions struct {
	target
	to     string
	undo   bool
	output choice
}

func (a *app) revertCmd() *cobra.Command {
	o := &revertOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "revert run/ID",
		Short: "Take a run back to a message: its conversation and its files",
		Long: `Take a run that has ended back to what it was before a message: the messages from
there on leave the conversation, and the files that it has changed since are as
they were. "agentctl run --continue" goes on from there.

It is all or nothing. If one of these files is not as the run has left it, or its
content was too large to be kept, nothing is changed, the files are listed and the
exit code is 1 or 2. Only files that the run has made are deleted; those that others
have added meanwhile stay. What the run did outside, such as a request or a comment,
stays done and is listed.

--undo takes the newest revert back. The next turn makes it permanent.`,
		Example: `  agentctl revert @latest --to turn/2
  agentctl revert @latest --to step/4
  agentctl revert @latest --undo
  agentctl events @latest        the ids of messages`,
		GroupID:           groupRun,
		Args:              oneArg("the run (run/ID or @latest)"),
		ValidArgsFunction: a.completeAnyRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runRevert(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "the first message that is taken back: an id, turn/N, or step/N")
	_ = cmd.RegisterFlagCompletionFunc("to", a.completePlaces(false)) // fails only for a flag that is not there
	f.BoolVar(&o.undo, "undo", false, "take the newest revert back")
	output(cmd, &o.output, "format: a list of the files, or one object")
	o.target.flags(cmd)
	return cmd
}

func (o *revertOptions) runRevert(ctx context.Context, ref string) error {
	if (o.to == "") != o.undo {
		return reason.Usagef("revert takes either --to or --undo").WithHint("agentctl revert " + ref + " --to turn/2")
	}
	src, err := o.locateWord(ctx, ref)
	if err != nil {
		return err
	}
	defer src.close()
	id, err := src.local("revert")
	if err != nil {
		return err
	}
	stdout := o.app.stdout()
	// A signal must not come between two files.
	ctx, signals := watch(ctx, stopNotice(o.app.stderr()))
	defer signals.stop()
	r, err := runs.Revert(ctx, runs.RevertOptions{Ref: id, State: src.state, To: o.to, Undo: o.undo, By: who(o.app.In)})
	if err != nil {
		return err
	}
	out := display.Reverted{Run: r.Run, To: r.To, Undo: r.Undo, Messages: r.Messages, Dir: r.Dir, Files: r.Files, Left: r.Left}
	for _, e := range r.Effects {
		out.Effects = append(out.Effects, display.Effect(e))
	}
	if o.output.value == display.FormatJSON {
		return out.WriteJSON(stdout)
	}
	return out.WriteText(stdout)
}
