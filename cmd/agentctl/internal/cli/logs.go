package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
)

type logsOptions struct {
	target
	follow bool
	tail   int
	// children shows what subagents say as well.
	children bool
	selector string
}

func (a *app) logsCmd() *cobra.Command {
	o := &logsOptions{target: target{app: a}}
	cmd := &cobra.Command{
		Use:   "logs run/NAME... | logs -l SELECTOR",
		Short: "Show the answer of a run, or of several",
		Long: `Show the answer of a run, and nothing else on stdout.

With -f the text that the model writes is shown as it comes, step by step, until
the run has ended. The run is looked for in the state folder, then in the control
plane that is selected, if it runs; with --context or -n only there. "agentctl
events" shows what happened, "agentctl attach" shows a run as "agentctl run" does.
--tail shows the last lines of the answer. A call that exceeded what it was
judged by is named on stderr. With --children the answers of its
subagents are shown before it, each line behind the name of the subagent's run;
with -f what they write is shown between the text of the run.

Several runs can be named, or selected by their labels at the control plane with -l:
those that are there when the command begins, 50 at most. Each line is then behind the
name of its run, and with -f each text comes when it is complete, until all have ended.

Exit code 0: the run has an answer, or all runs have. 1: one has none, or none yet.`,
		Example: `  agentctl logs run/review-7xk2p
  agentctl logs @latest --tail 20
  agentctl logs @latest -f
  agentctl logs @latest -f --children
  agentctl logs -f run/review-7xk2p run/fix-9mqt4
  agentctl logs -f -l team=web`,
		GroupID:           groupRun,
		Args:              o.args,
		ValidArgsFunction: a.completeAnyRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.selector != "" || len(args) > 1 {
				return o.runSeveral(cmd.Context(), args)
			}
			return o.runLogs(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "show the text as it comes, until the run has ended")
	cmd.Flags().IntVar(&o.tail, "tail", -1, "show the last `number` of lines of the answer; -1 shows all")
	_ = cmd.RegisterFlagCompletionFunc("tail", cobra.NoFileCompletions) // fails only for a flag that is not there
	childrenFlag(cmd, &o.children)
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "runs of the control plane with these `labels`, for example team=web,tier!=test")
	_ = cmd.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions) // fails only for a flag that is not there
	o.flags(cmd)
	return cmd
}

// args are runs, or none with a selector.
func (o *logsOptions) args(cmd *cobra.Command, args []string) error {
	switch selects := cmd.Flags().Changed("selector"); {
	case selects && len(args) > 0:
		return usagef("unexpected argument %q beside -l, which selects the runs", args[0])
	case selects && o.selector == "":
		return usagef("-l selects nothing: it is empty")
	case !selects && len(args) == 0:
		return usagef("the run (run/NAME) is missing")
	case o.tail < -1:
		return usagef("--tail %d: a number of lines cannot be negative", o.tail)
	case o.tail >= 0 && o.follow:
		return usagef("--tail is for the answer of a run: leave -f out")
	}
	return nil
}

func (o *logsOptions) runLogs(ctx context.Context, word string) error {
	l := &logged{screen: o.app.stdout(), notices: o.app.stderr(), tail: o.tail}
	if o.follow {
		l.text = display.NewTextLog(l.screen)
	}
	var below func(event.Event) error
	if o.children {
		below = l.below
	}
	end, src, err := o.app.handEvents(ctx, &o.target, word, wish{follow: o.follow}, l.event, below)
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
	// notices is where things are shown that are not the text; files is the folder of the
	// run's files.
	notices *display.Screen
	files   string
	// text shows the text as it comes; nil where only the answer is shown.
	text     *display.TextLog
	finished *event.RunFinished
	// tail is the number of lines of the answer to show, -1 for all.
	tail int
}

// lastLines are the last n lines of a text, whose last one may not be complete.
func lastLines(text string, n int) string {
	if n < 0 {
		return text
	}
	end := len(strings.TrimSuffix(text, "\n"))
	start := end
	for ; n > 0; n-- {
		if start = strings.LastIndexByte(text[:start], '\n'); start < 0 {
			return text
		}
	}
	if start == end {
		return ""
	}
	return text[start+1:]
}

func (l *logged) event(e event.Event) error {
	switch d := e.Data.(type) {
	case event.RunFinished:
		l.finished = &d
	case event.RunResumed:
		l.finished = nil
	case event.RunStarted:
		l.files = d.Workspace.Dir
	case event.ToolResult:
		l.excess(e.Call, &d.ToolResult)
	case event.ToolError:
		l.excess(e.Call, &d.ToolResult)
	}
	if l.text == nil {
		return nil
	}
	return l.text.Event(e)
}

// excess shows, beside the text, that a call exceeded its facts.
func (l *logged) excess(call string, r *message.ToolResult) {
	if excess := r.Record.Excess(l.files); excess != "" {
		display.Notice(l.notices, "call "+call+" "+excess)
	}
}

// below shows what a subagent says: each text when it is complete where the run is followed,
// else its answer.
func (l *logged) below(e event.Event) error {
	switch d := e.Data.(type) {
	case event.TextEnd:
		if l.text != nil {
			return l.text.Lines(display.ShortRun(e.Run), d.Text)
		}
	case event.RunFinished:
		if l.text == nil && d.Output != "" {
			return display.MarkedLines(l.screen, display.ShortRun(e.Run), d.Output)
		}
	}
	return nil
}

// finish shows the answer where nothing was followed, or says why there is none.
func (l *logged) finish(src *source, end *client.RunEnd) error {
	pieces := l.text != nil
	f := l.finished
	switch {
	case f != nil && f.Phase == view.Succeeded && pieces:
		return nil
	case f != nil && f.Phase == view.Succeeded:
		return display.Foreign(l.screen, lastLines(f.Output, l.tail))
	}
	text := fmt.Sprintf("run/%s has no answer: it is %s", src.name(), end.Phase) + because(end.Reason, end.Message)
	if end.Ended() || pieces {
		return fmt.Errorf("%s", text)
	}
	return reason.New(reason.Internal, "%s", text).WithHint("follow it with: agentctl logs -f run/%s", src.name())
}
