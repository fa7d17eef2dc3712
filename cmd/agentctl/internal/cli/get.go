package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

// getOptions are those of get. The verb and its flags are named as kubectl's.
type getOptions struct {
	target
	output     format
	selector   string
	fields     string
	all, watch bool
	sortBy     string
	noHeaders  bool
	showLabels bool
	missingOK  bool
}

func (a *app) getCmd() *cobra.Command {
	o := &getOptions{target: target{app: a}}
	cmd := &cobra.Command{
		Use:   "get KIND [NAME...] | KIND/NAME...",
		Short: "List runs, or objects of a control plane",
		Long: `List runs, or objects of a control plane.

"get runs" lists the runs of the state folder, the newest first. With --context,
-n, -A, -l, --field-selector or -w, and for every other kind, it lists what a
control plane keeps; a run that is named and not in the state folder is looked
for there, too.

A run is named by its id, with or without run/, by the start of its id, or
@latest. A run whose process is gone and that has not ended is Interrupted;
"agentctl resume" goes on with it, and with one that is Suspended.

Kinds are named by their names, short names, a list with commas, or all; agentctl
means the same, here and to kubectl. Events, which tell what happened to objects,
are a kind of their own.`,
		Example: `  agentctl get runs
  agentctl get run @latest -o json
  agentctl get agents,models -A
  agentctl get agent reviewer -o jsonpath='{.spec.modelRef.name}'
  agentctl get events --field-selector involvedObject.name=reviewer
  agentctl get tools -l team=web -o custom-columns=NAME:.metadata.name,RISK:.spec.risk`,
		GroupID:           groupRun,
		Args:              someResource,
		ValidArgsFunction: a.completeGet,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runGet(cmd.Context(), args) },
	}
	formatFlag(cmd, &o.output)
	selectorFlag(cmd, &o.selector)
	cmd.Flags().StringVar(&o.fields, "field-selector", "", "only objects with these `fields`, for example metadata.name=web")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "objects of every namespace")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on with changes until stopped")
	cmd.Flags().StringVar(&o.sortBy, "sort-by", "", "order by a `path`, for example .metadata.creationTimestamp")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave out the names of the columns")
	cmd.Flags().BoolVar(&o.showLabels, "show-labels", false, "add a column with the labels")
	cmd.Flags().BoolVar(&o.missingOK, "ignore-not-found", false, "an object that is not there is no error")
	o.flags(cmd)
	return cmd
}

// elsewhere says whether runs are asked of a control plane.
func (o *getOptions) elsewhere() bool {
	return o.meant() || o.all || o.watch || o.selector != "" || o.fields != "" || o.sortBy != "" || o.showLabels
}

// runWords are what runs are called on the command line.
var runWords = []string{"runs", "run"}

// someResource wants a word at least; get reads them all.
func someResource(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("say what to list").try("agentctl get runs")
	}
	return nil
}

// stateRuns says whether words mean runs of the state folder: "runs", "run ID"
// or "run/ID".
func (o *getOptions) stateRuns(args []string) bool {
	word, _, named := strings.Cut(args[0], "/")
	if !slices.Contains(runWords, word) || o.elsewhere() {
		return false
	}
	return !named || !slices.ContainsFunc(args[1:], func(a string) bool { return strings.Contains(a, "/") && !strings.HasPrefix(a, "run/") })
}

func (o *getOptions) runGet(ctx context.Context, args []string) error {
	if !o.stateRuns(args) {
		return o.runGetObjects(ctx, args)
	}
	err := o.runGetRuns(ctx, args)
	if err == nil || len(args) == 1 && !strings.Contains(args[0], "/") {
		return err
	}
	// One that is not here may be there; nothing is started to find out.
	if there := o.runGetRunning(ctx, args); there == nil {
		return nil
	}
	return err
}

func (o *getOptions) runGetRuns(ctx context.Context, args []string) error {
	state, err := statedir.Find(o.app.state)
	if err != nil {
		return err
	}
	refs := slices.Clone(args[1:])
	if _, name, named := strings.Cut(args[0], "/"); named {
		refs = append([]string{name}, refs...)
	}
	var listed []runs.Summary
	if len(refs) == 0 {
		if listed, err = runs.List(ctx, state); err != nil {
			return err
		}
	}
	for _, ref := range refs {
		s, err := runs.Get(ctx, state, ref)
		if err != nil {
			return err
		}
		listed = append(listed, *s)
	}
	if err := o.write(listed, len(refs) == 1, state); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return nil
}

func (o *getOptions) write(listed []runs.Summary, one bool, state string) error {
	out := o.app.stdout()
	switch {
	case o.output.kind == display.FormatJSON && one:
		return display.WriteObject(out, listed[0])
	case o.output.kind == display.FormatJSON:
		return display.WriteObject(out, runList{Items: listed})
	case o.output.structured() && one:
		return o.output.write(out, listed[0])
	case o.output.structured():
		return o.output.write(out, runList{Items: listed})
	case len(listed) == 0 && o.output.kind != display.FormatName:
		display.Notice(o.app.stderr(), "no runs in "+state)
		return nil
	}
	list := display.RunList{Runs: make([]display.ListedRun, len(listed)), Now: time.Now(), Format: o.output.kind, NoHeaders: o.noHeaders}
	for i := range listed {
		r := &listed[i]
		list.Runs[i] = display.ListedRun{
			Name: r.Name, Agent: r.Agent, Model: r.Model, Phase: r.Phase, Reason: r.Reason, Started: r.StartTime, Steps: r.Steps,
			Cost: r.Cost, Tokens: r.Tokens.Total(), Worked: time.Duration(r.DurationMs) * time.Millisecond, Waiting: len(r.Waiting), Source: r.Source,
		}
	}
	return list.Write(out)
}

// runList is what programs read of several runs.
type runList struct {
	Items []runs.Summary `json:"items"`
}

// completeGet offers kinds, then names.
func (a *app) completeGet(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	word := ""
	if len(args) > 0 {
		word = args[0]
	} else if kind, _, ok := strings.Cut(typed, "/"); ok {
		word = kind
	}
	if !slices.Contains(runWords, word) {
		words, directive := a.completeObjects(cmd, args, typed)
		if len(args) == 0 && word == "" {
			words = append(words, eventWords[0])
		}
		return words, directive
	}
	refs, directive := a.completeRuns(cmd, nil, typed)
	if len(args) == 0 {
		return slices.DeleteFunc(refs, func(r string) bool { return !strings.HasPrefix(r, "run/") }), directive
	}
	for i, r := range refs {
		refs[i] = strings.TrimPrefix(r, "run/")
	}
	return slices.DeleteFunc(refs, func(r string) bool { return slices.Contains(args[1:], r) }), directive
}
