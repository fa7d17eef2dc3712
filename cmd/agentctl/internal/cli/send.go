package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/ci"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/runs"
)

type sendOptions struct {
	target
	output choice
}

func (a *app) sendCmd() *cobra.Command {
	o := &sendOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "send RUN TEXT|@FILE|-",
		Short: "Send a message to a run",
		Long: `Send a message to a run. The model reads it with its next request: between two
steps, when the calls of the current step have their results. A run that has its
final answer by then continues instead of ending; its limits hold.

A run that has ended goes on with the message as its next turn, which is executed
here and shown as "agentctl run --continue" does, with the manifests of the turn
before as they are now. stdout and the exit code are then those of the turn.

For a run that is suspended or was killed the message is kept: "agentctl resume"
reads it. It does not answer a question; "agentctl approve" and "agentctl deny" do.

The run is named as "agentctl help names" says. The text is an argument, @FILE, or
- for stdin, at most 1 MiB.

Exit codes: 0 the message is kept until the run reads it; 2 the run does not exist or
accepts no message; those of "agentctl run" for a turn.`,
		Example: `  agentctl send @latest "leave the tests alone"
  git diff | agentctl send hello-01k -
  agentctl send run/hello-01k @notes.md -o json`,
		GroupID: groupRun,
		Args: func(_ *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return usagef("the run (run/ID or @latest) is missing")
			case 1:
				return usagef("the text is missing: TEXT, @FILE, or - for stdin")
			case 2:
				return nil
			}
			return usagef("unexpected argument %q: a text of several words is quoted", args[2])
		},
		ValidArgsFunction: a.completeSend,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runSend(cmd.Context(), args[0], args[1]) },
	}
	output(cmd, &o.output, "what stdout holds: text, or JSON")
	o.flags(cmd)
	return cmd
}

// completeSend offers runs that are in progress.
func (a *app) completeSend(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	here, directive := a.completeResumable(cmd, args, typed)
	return append(a.runObjects(cmd, args), here...), directive
}

func (o *sendOptions) runSend(ctx context.Context, ref, value string) error {
	text, err := words(value, "the text", "the text", o.app.In)
	if err != nil {
		return err
	}
	src, err := o.locateWord(ctx, ref)
	if err != nil {
		return o.only(ctx, ref, err)
	}
	defer src.close()
	if src.client != nil {
		return o.sendThere(ctx, src, text)
	}
	sent, err := runs.Send(ctx, runs.SendOptions{Ref: src.ref, State: o.app.state, Text: text, By: who(o.app.In)})
	if errors.Is(err, runs.ErrEnded) && !ofObject(src.id) {
		turn := &runOptions{app: o.app, target: o.target, output: o.output, ci: newChoice(string(ci.None)), continues: src.id, said: text}
		return turn.runRun(ctx, true, false)
	}
	if err != nil {
		return err
	}
	shown := display.Sent{ID: sent.ID, Run: sent.Run, Object: sent}
	if sent.State != view.Running {
		shown.Next = display.Resume(sent.Run, o.app.state)
	}
	if o.output.value == display.FormatJSON {
		return shown.WriteJSON(o.app.stdout())
	}
	return shown.WriteText(o.app.stdout())
}

// sendThere sends the message to the control plane that executes the run.
func (o *sendOptions) sendThere(ctx context.Context, src *source, text string) error {
	id, err := src.client.SendMessage(ctx, src.run, text)
	if client.Conflict(err) || client.Missing(err) {
		return &codeError{err, reason.ExitUsage}
	}
	if err != nil {
		return err
	}
	shown := display.Sent{ID: id, Run: src.name(), Object: map[string]string{"id": id, "run": src.name()}}
	if o.output.value == display.FormatJSON {
		return shown.WriteJSON(o.app.stdout())
	}
	return shown.WriteText(o.app.stdout())
}
