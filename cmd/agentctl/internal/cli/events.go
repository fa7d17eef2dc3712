package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

type eventsOptions struct {
	target
	output choice
	follow bool
	from   int64
}

func (a *app) eventsCmd() *cobra.Command {
	o := &eventsOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSONL)}
	cmd := &cobra.Command{
		Use:   "events run/NAME",
		Short: "Tell what happened in a run",
		Long: `Tell what happened in a run, one line an event: its number, its time, its type
and what it is about. Pieces of a text or of a call that comes whole a little
later have no line; with -o jsonl every event stands there as in the journal
("agentctl schema event" describes it).

The run is looked for in the state folder, then in the control plane that runs;
with --context or -n only there. With -f what is yet to come is told, too, until
the run has ended. --from is the number of the first event that is shown.`,
		Example: `  agentctl events run/review-7xk2p
  agentctl events @latest -f -o jsonl --from 120`,
		GroupID:           groupRun,
		Args:              oneArg("the run (run/NAME)"),
		ValidArgsFunction: a.completeAnyRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runEvents(cmd.Context(), args[0]) },
	}
	output(cmd, &o.output, "what stdout holds: a line an event, or the events as they are")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until the run has ended")
	fromFlag(cmd, &o.from)
	o.flags(cmd)
	return cmd
}

func (o *eventsOptions) runEvents(ctx context.Context, word string) error {
	if err := checkFrom(o.from); err != nil {
		return err
	}
	show, out := display.EventLine, o.app.stdout()
	if o.output.value == display.FormatJSONL {
		show = display.EventJSON
	}
	told := false
	end, src, err := o.app.tellRun(ctx, &o.target, word, wish{from: o.from, follow: o.follow}, func(e event.Event) error {
		told = true
		if err := show(out, e); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
		return nil
	})
	if err == nil && !told {
		display.Notice(o.app.stderr(), "run/"+src.name()+" has no such events: it is "+end.Phase+because(end.Reason, end.Message))
	}
	return err
}
