package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
)

type logsOptions struct {
	target
	follow bool
}

func (a *app) logsCmd() *cobra.Command {
	o := &logsOptions{target: target{app: a}}
	cmd := &cobra.Command{
		Use:   "logs run/NAME",
		Short: "Show the answer of a run",
		Long: `Show the answer of a run, and nothing else on stdout.

With -f the text that the model writes is shown as it comes, step by step, until
the run has ended. The run is looked for in the state folder, then in the control
plane that is meant, if it runs; with --context or -n only there. "agentctl events" tells what
happened, "agentctl attach" shows a run as "agentctl run" does.

Exit code 0: the run has an answer. 1: it has none, or none yet.`,
		Example: `  agentctl logs run/review-7xk2p
  agentctl logs @latest -f`,
		GroupID:           groupRun,
		Args:              oneArg("the run (run/NAME)"),
		ValidArgsFunction: a.completeAnyRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runLogs(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "show the text as it comes, until the run has ended")
	o.flags(cmd)
	return cmd
}

func (o *logsOptions) runLogs(ctx context.Context, word string) error {
	l := &logged{screen: o.app.stdout()}
	if o.follow {
		l.text = display.NewTextLog(l.screen)
	}
	end, src, err := o.app.tellRun(ctx, &o.target, word, wish{follow: o.follow}, l.event)
	if l.text != nil {
		if closed := l.text.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return err
	}
	return l.finish(src, end)
}

// logged is the text of a run, as far as it was shown.
type logged struct {
	screen *display.Screen
	// text shows the text as it comes; nil where only the answer is shown.
	text     *display.TextLog
	finished *event.RunFinished
}

func (l *logged) event(e event.Event) error {
	switch d := e.Data.(type) {
	case event.RunFinished:
		l.finished = &d
	case event.RunResumed:
		l.finished = nil
	}
	if l.text == nil {
		return nil
	}
	return l.text.Event(e)
}

// finish shows the answer where nothing was followed, or says why there is none.
func (l *logged) finish(src *source, end *client.RunEnd) error {
	pieces := l.text != nil
	f := l.finished
	switch {
	case f != nil && f.Phase == view.Succeeded && pieces:
		return nil
	case f != nil && f.Phase == view.Succeeded:
		return display.Foreign(l.screen, f.Output)
	}
	text := fmt.Sprintf("run/%s has no answer: it is %s", src.name(), end.Phase) + because(end.Reason, end.Message)
	if end.Ended() || pieces {
		return fmt.Errorf("%s", text)
	}
	return reason.New(reason.Internal, "%s", text).WithHint("follow it with: agentctl logs -f run/%s", src.name())
}
