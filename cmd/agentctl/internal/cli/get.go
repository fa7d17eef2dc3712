package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/spell"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
)

// getOptions are those of get. The verb and its flags are named as kubectl's.
type getOptions struct {
	app    *app
	output choice
}

func (a *app) getCmd() *cobra.Command {
	o := &getOptions{app: a, output: newChoice(display.FormatText, display.FormatWide, display.FormatJSON, display.FormatName)}
	cmd := &cobra.Command{
		Use:   "get runs [ID...]",
		Short: "List runs, the newest first",
		Long: `List runs, the newest first: those of the state folder, or the ones that are named.

A run is named by its id, with or without run/, by the start of its id, or
@latest. A run whose process is gone and that has not ended is Interrupted;
"agentctl resume" goes on with it, and with one that is Suspended.`,
		Example: `  agentctl get runs
  agentctl get runs -o wide
  agentctl get run @latest -o json
  agentctl get runs -o name | head -3`,
		GroupID:           groupRun,
		Args:              resources,
		ValidArgsFunction: a.completeGet,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runGet(cmd.Context(), args) },
	}
	output(cmd, &o.output, "format: a table, a wider one, objects, or names: "+o.output.list())
	a.stateFlag(cmd)
	return cmd
}

// runWords are what runs are called on the command line.
var runWords = []string{"runs", "run"}

// resources accepts "runs", "run ID" and "run/ID".
func resources(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("say what to list").try("agentctl get runs")
	}
	word, _, _ := strings.Cut(args[0], "/")
	if slices.Contains(runWords, word) {
		return nil
	}
	err := usagef("there are no %q to list, only runs", word)
	if spell.Nearest(word, runWords) != "" || len(args) == 1 {
		return err.try("agentctl get runs")
	}
	return err
}

func (o *getOptions) runGet(ctx context.Context, args []string) error {
	state, err := runner.StateDir(o.app.state)
	if err != nil {
		return err
	}
	refs := args[1:]
	if _, name, named := strings.Cut(args[0], "/"); named {
		refs = append([]string{name}, refs...)
	}
	var runs []runner.RunSummary
	if len(refs) == 0 {
		if runs, err = runner.Summaries(ctx, state); err != nil {
			return err
		}
	}
	for _, ref := range refs {
		s, err := runner.Summary(ctx, state, ref)
		if err != nil {
			return err
		}
		runs = append(runs, *s)
	}
	if err := o.write(runs, len(refs) == 1, state); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return nil
}

func (o *getOptions) write(runs []runner.RunSummary, one bool, state string) error {
	out := o.app.stdout()
	switch {
	case o.output.value == display.FormatJSON && one:
		return display.WriteObject(out, runs[0])
	case o.output.value == display.FormatJSON:
		return display.WriteObject(out, runList{Items: runs})
	case len(runs) == 0 && o.output.value != display.FormatName:
		display.Notice(o.app.stderr(), "no runs in "+state)
		return nil
	}
	list := display.RunList{Runs: make([]display.ListedRun, len(runs)), Now: time.Now(), Format: o.output.value}
	for i := range runs {
		r := &runs[i]
		list.Runs[i] = display.ListedRun{
			Name: r.Name, Agent: r.Agent, Model: r.Model, Phase: r.Phase, Reason: r.Reason, Started: r.StartTime, Steps: r.Steps,
			Cost: r.Cost, Tokens: r.Tokens.Total(), Worked: time.Duration(r.DurationMs) * time.Millisecond, Waiting: len(r.Waiting), Source: r.Source,
		}
	}
	return list.Write(out)
}

// runList is what programs read of several runs.
type runList struct {
	Items []runner.RunSummary `json:"items"`
}

// completeGet offers the resource, then names.
func (a *app) completeGet(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		if strings.HasPrefix(typed, "run/") {
			refs, directive := a.completeRuns(cmd, nil, typed)
			return slices.DeleteFunc(refs, func(r string) bool { return !strings.HasPrefix(r, "run/") }), directive
		}
		return []string{"runs"}, cobra.ShellCompDirectiveNoFileComp
	}
	refs, directive := a.completeRuns(cmd, nil, typed)
	for i, r := range refs {
		refs[i] = strings.TrimPrefix(r, "run/")
	}
	return slices.DeleteFunc(refs, func(r string) bool { return slices.Contains(args[1:], r) }), directive
}
