package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

type diffOptions struct {
	target
	stat   bool
	output choice

	// of manifests
	files     []string
	recursive bool
	selector  string
	force     bool
}

func (a *app) diffCmd() *cobra.Command {
	o := &diffOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "diff run/ID | diff -f FILE|FOLDER|-",
		Short: "Show what a run changed, or what an apply would change",
		Long: `Show what a run changed, or what an apply would change, as a unified diff.

The run is named run/ID, by the start of its id, or @latest. The change is the
one the run has recorded: what happened to the files since makes no difference.

On a terminal, or with --color always, characters that a terminal would hide or
obey are named, as in <U+202E>. Into a pipe or a file the diff goes byte for
byte, so that "git apply" takes it.

With -f the objects of a control plane are compared with what they would become
if the manifests were applied, defaults included. Exit code 0: nothing would
change. 1: something would. 2: an error.`,
		Example: `  agentctl diff @latest
  agentctl diff run/hello --stat
  agentctl diff @latest | git apply --check
  agentctl diff -f manifests/hello`,
		GroupID:           groupRun,
		Args:              o.someDiff,
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.runDiffObjects(cmd.Context())
			}
			return o.runDiff(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&o.stat, "stat", false, "list the files with the number of lines added and removed")
	output(cmd, &o.output, "format: the diff, or one object")
	files(cmd, &o.files)
	cmd.Flags().BoolVarP(&o.recursive, "recursive", "R", false, "with -f: also take the folders below a folder")
	selectorFlag(cmd, &o.selector)
	cmd.Flags().BoolVar(&o.force, "force-conflicts", false, "with -f: as if fields that somebody else manages were taken over")
	o.flags(cmd)
	return cmd
}

// someDiff wants a run, or manifests.
func (o *diffOptions) someDiff(cmd *cobra.Command, args []string) error {
	if len(o.files) == 0 {
		return oneArg("the run (run/ID or @latest)")(cmd, args)
	}
	return filesOnly(cmd, args)
}

func (o *diffOptions) runDiff(ctx context.Context, ref string) error {
	state, err := statedir.Find(o.app.state)
	if err != nil {
		return err
	}
	c, err := runs.Diff(ctx, state, ref)
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
