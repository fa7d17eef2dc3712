package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
)

type diffOptions struct {
	app    *app
	stat   bool
	output choice
}

func (a *app) diffCmd() *cobra.Command {
	o := &diffOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "diff run/ID",
		Short: "Show what a run changed",
		Long: `Show what a run changed, as a unified diff.

The run is named run/ID, by the start of its id, or @latest. The change is the
one the run has recorded: what happened to the files since makes no difference.`,
		Example: `  agentctl diff @latest
  agentctl diff run/hello --stat
  agentctl diff @latest | git apply --check`,
		GroupID:           groupRun,
		Args:              oneArg("the run (run/ID or @latest)"),
		ValidArgsFunction: a.completeRuns,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runDiff(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&o.stat, "stat", false, "list the files with the number of lines added and removed")
	output(cmd, &o.output, "format: the diff, or one object")
	a.stateFlag(cmd)
	return cmd
}

func (o *diffOptions) runDiff(ctx context.Context, ref string) error {
	state, err := runner.StateDir(o.app.state)
	if err != nil {
		return err
	}
	c, err := runner.Diff(ctx, state, ref)
	if err != nil {
		return err
	}
	change := display.Change{Run: c.Run, Files: c.Files, Diff: c.Diff}
	switch {
	case o.output.value == display.FormatJSON:
		return change.WriteJSON(o.app.stdout())
	case o.stat:
		return change.WriteStat(o.app.stdout())
	}
	return change.WriteDiff(o.app.stdout())
}
