package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/runs"
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
		Use:   "diff run/ID... | diff run/ID@PLACE run/ID@PLACE | diff -f FILE|FOLDER|-",
		Short: "Show what a run changed, where two runs differ, or what an apply would change",
		Long: `Show what a run changed, or what an apply would change, as a unified diff.

A run is named by run/ID and the other forms of "agentctl help names". The change
is the one the run has recorded: what happened to the files since makes no
difference. Of several runs each diff is below the name of its run. run/ID/CALL is
what a coding agent of others has proposed in a call, also while the run waits.

Two runs, or two places of one run, are compared where one of them has a place:
run/ID@PLACE, as "agentctl fork --at" names it: turn/N, step/N, a call, a message,
or end. What differs is shown: the first thing in the conversations, decisions
about the same calls, what each has used, and the files as they were then. Files
that are the same are not read, and contents that are not known are named.

On a terminal, or with --color always, characters that a terminal would hide or
obey are named, as in <U+202E>. Into a pipe or a file the diff goes byte for
byte, so that "git apply" takes it.

With -f the objects of a control plane are compared with what they would become
if the manifests were applied, defaults included. Exit code 0: nothing would
change. 1: something would. 2: an error.`,
		Example: `  agentctl diff @latest
  agentctl diff run/hello --stat
  agentctl diff @latest | git apply --check
  agentctl diff @latest/call_1_1
  agentctl diff @latest@step/2 @latest@end
  agentctl diff run/fixer-01k@call_3_1 run/fixer-01m --stat
  agentctl diff $(agentctl get runs -o name) --stat
  agentctl diff -f manifests/hello`,
		GroupID:           groupRun,
		Args:              o.someDiff,
		ValidArgsFunction: a.completeRunsAndPlaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.runDiffObjects(cmd.Context())
			}
			if places(args) {
				return o.runCompare(cmd.Context(), args)
			}
			return o.runDiff(cmd.Context(), args)
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

// someDiff expects runs, or manifests.
func (o *diffOptions) someDiff(cmd *cobra.Command, args []string) error {
	switch {
	case len(o.files) > 0:
		return filesOnly(cmd, args)
	case len(args) == 0:
		return usagef("the run (run/ID or @latest) is missing")
	}
	return nil
}

// diffList is what programs read of several runs.
type diffList struct {
	Items []any `json:"items"`
}

// runDiff shows the change of each run. Of several, those without one are errors
// for the end.
func (o *diffOptions) runDiff(ctx context.Context, words []string) error {
	var failed []error
	list := diffList{Items: []any{}}
	for _, word := range words {
		c, err := o.change(ctx, word)
		if err != nil && len(words) > 1 {
			failed = append(failed, err)
		}
		switch {
		case err != nil && (c.Run == "" && len(words) == 1 || ctx.Err() != nil):
			return err
		case c.Run == "":
			continue
		case o.output.value == display.FormatJSON && len(words) > 1:
			list.Items = append(list.Items, c.Object())
			continue
		case o.output.value == display.FormatJSON:
			return errors.Join(err, c.WriteJSON(o.app.stdout()))
		}
		if len(words) > 1 {
			// Readers of unified diffs skip what is before the first file.
			if err := display.Text(o.app.stdout(), "run/"+c.Run+"\n"); err != nil {
				return err
			}
		}
		write := c.WriteDiff
		if o.stat {
			write = c.WriteStat
		}
		if wrote := write(o.app.stdout()); wrote != nil {
			return wrote
		}
		if err != nil && len(words) == 1 {
			return err
		}
	}
	if o.output.value == display.FormatJSON {
		if err := display.WriteObject(o.app.stdout(), list); err != nil {
			return err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	o.app.complain(failed...)
	return exit(reason.ExitUsage)
}

// change is that of one run. What is known of one that is not completely known comes
// with an error.
func (o *diffOptions) change(ctx context.Context, word string) (display.Change, error) {
	ref, err := parseCall(word)
	if err != nil {
		return display.Change{}, err
	}
	call := ref.call
	ref.call = ""
	src, err := o.openRun(ctx, ref)
	if err != nil {
		return display.Change{}, err
	}
	defer src.close()
	id, err := src.local("diff")
	if err != nil {
		return display.Change{}, err
	}
	var c *runs.Change
	if call != "" {
		c, err = runs.DiffCall(ctx, src.state, id, call)
	} else {
		c, err = runs.Diff(ctx, src.state, id)
	}
	if c == nil {
		return display.Change{}, err
	}
	return display.Change{Run: c.Run, Files: c.Files, Diff: c.Diff}, err
}
