package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

type eventsOptions struct {
	target
	output choice
	follow bool
	from   int64
	// children shows the events of the runs below as well.
	children bool
	// about and all are of events of objects.
	about string
	all   bool
}

func (a *app) eventsCmd() *cobra.Command {
	o := &eventsOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSONL)}
	cmd := &cobra.Command{
		Use:   "events [run/NAME]",
		Short: "Show the events of a run, or of the objects of a control plane",
		Long: `Show the events of a run, one a line: number, time, type and subject. Pieces of a
text or of a call that is complete a little later have no line. With -o jsonl every
event is shown as it is in the journal ("agentctl schema event" describes it).

The run is looked for in the state folder, then in the selected control plane, if
it runs; with --context or -n only there. With -f new events are shown until the
run has ended. --from is the number of the first event that is shown.

With --children the events of the runs of its subagents, and of theirs, are shown
between those of the run, each after the call that has started the subagent. A
line of such a run begins with the shortest name that the run has; with -o jsonl
the field run says which one it is.

Without a run it shows the events of the objects of a control plane, as "get
events" does: that they became ready, or why not. --for names one object; with -f
it continues until stopped.`,
		Example: `  agentctl events run/review-7xk2p
  agentctl events @latest -f -o jsonl --from 120
  agentctl events @latest --children
  agentctl events --for agent/reviewer`,
		GroupID:           groupRun,
		Args:              atMostOneRun,
		ValidArgsFunction: a.completeAnyRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return o.runEvents(cmd.Context(), args[0])
			}
			for _, name := range []string{"from", "output", "children"} {
				if cmd.Flags().Changed(name) {
					return usagef("--%s is about the events of a run: name it (run/NAME)", name)
				}
			}
			return o.runObjectEvents(cmd.Context())
		},
	}
	output(cmd, &o.output, "what stdout holds: a line an event, or the events as they are")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "show new events until the run has ended")
	fromFlag(cmd, &o.from)
	childrenFlag(cmd, &o.children)
	cmd.Flags().StringVar(&o.about, "for", "", "only events about an object, as `KIND/NAME`")
	_ = cmd.RegisterFlagCompletionFunc("for", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return a.completeObjects(cmd, nil, typed)
	}) // fails only for a flag that is not there
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "events about objects of every namespace")
	o.flags(cmd)
	return cmd
}

func atMostOneRun(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("unexpected argument %q: one run is named", args[1])
	}
	return nil
}

// runObjectEvents shows the events of objects.
func (o *eventsOptions) runObjectEvents(ctx context.Context) error {
	get := &getOptions{target: o.target, output: format{kind: display.FormatText}, all: o.all, watch: o.follow}
	if o.about != "" {
		w, err := parseWanted([]string{o.about}, o.namespace)
		if err != nil {
			return err
		}
		if !w.single || strings.ContainsAny(w.refs[0].Name, `,=\`) {
			return usagef("--for %s: an object is named KIND/NAME", o.about)
		}
		get.fields = "involvedObject.kind=" + w.refs[0].Kind + ",involvedObject.name=" + w.refs[0].Name
	}
	return get.runGetObjects(ctx, []string{"events"})
}

func (o *eventsOptions) runEvents(ctx context.Context, word string) error {
	if o.about != "" || o.all {
		return usagef("--for and -A are about the events of objects: leave %s out", word)
	}
	if err := checkFrom(o.from); err != nil {
		return err
	}
	show, out := display.EventLine, o.app.stdout()
	if o.output.value == display.FormatJSONL {
		show = display.EventJSON
	}
	shown := false
	write := func(show func(*display.Screen, event.Event) error) func(event.Event) error {
		return func(e event.Event) error {
			shown = true
			if err := show(out, e); err != nil {
				return fmt.Errorf("write events: %w", err)
			}
			return nil
		}
	}
	var below func(event.Event) error
	if o.children {
		below = write(show)
		if o.output.value == display.FormatText {
			below = write(display.ChildEventLine)
		}
	}
	end, src, err := o.app.handEvents(ctx, &o.target, word, wish{from: o.from, follow: o.follow}, write(show), below)
	if err == nil && !shown {
		display.Notice(o.app.stderr(), "run/"+src.name()+" has no such events: it is "+end.Phase+because(end.Reason, end.Message))
	}
	return err
}
