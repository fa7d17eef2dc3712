package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

type attachOptions struct {
	target
	output choice
	from   int64
}

func (a *app) attachCmd() *cobra.Command {
	o := &attachOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON, display.FormatJSONL)}
	cmd := &cobra.Command{
		Use:   "attach run/NAME",
		Short: "Watch a run in another process until it ends",
		Long: `Watch a run of a control plane, or of another terminal, until it ends. Earlier
events are shown first. Calls of its subagents are shown behind the name of the
subagent's run; at a control plane they are not.

Output and exit code are those of "agentctl run". Ctrl-C detaches, and the run
continues; "agentctl cancel" ends it. A lost connection is opened again at the
same event.

--from is the number of the first event that is shown, as in the output of
-o jsonl and "agentctl events".

Exit code 130: detached by Ctrl-C.`,
		Example: `  agentctl attach run/review-7xk2p
  agentctl attach run/review-7xk2p --from 120 -o jsonl
  agentctl attach @latest`,
		GroupID:           groupRun,
		Args:              oneArg("the run (run/NAME)"),
		ValidArgsFunction: a.completeAnyRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runAttach(cmd.Context(), args[0]) },
	}
	output(cmd, &o.output, "what stdout holds: the answer, one object, or every event")
	fromFlag(cmd, &o.from)
	o.flags(cmd)
	return cmd
}

// fromFlag adds --from.
func fromFlag(cmd *cobra.Command, from *int64) {
	cmd.Flags().Int64Var(from, "from", 1, "`number` of the first event that is shown")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.NoFileCompletions) // fails only for a flag that is not there
}

// childrenFlag adds --children.
func childrenFlag(cmd *cobra.Command, children *bool) {
	cmd.Flags().BoolVar(children, "children", false, "also show the runs of subagents, between what the run itself does")
}

func checkFrom(from int64) error {
	if from < 1 {
		return usagef("--from %d: events count from 1", from)
	}
	return nil
}

func (o *attachOptions) runAttach(ctx context.Context, word string) error {
	if err := checkFrom(o.from); err != nil {
		return err
	}
	return o.app.follow(ctx, following{
		format: o.output.value, from: o.from,
		find: func(ctx context.Context) (*source, error) { return o.locateWord(ctx, word) },
	})
}

// runObjects are the runs of a control plane that runs, for the first word.
func (a *app) runObjects(cmd *cobra.Command, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	names := a.names(cmd, v1alpha1.KindRun)
	names = names[:min(len(names), maxCompletions)]
	for i, name := range names {
		names[i] = "run/" + name
	}
	return names
}

// completeAnyRun offers these, and the runs of the state folder.
func (a *app) completeAnyRun(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return append(a.runObjects(cmd, args), a.localRuns(args)...), inOrder
}
