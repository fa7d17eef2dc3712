package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/safetext"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

// placesIn are the places in a run of the state folder that begin as typed, the newest of
// each kind first, with what is there behind a tab: turns, calls, and steps. Calls are
// left out where only messages can be named.
func (a *app) placesIn(ctx context.Context, ref, typed string, calls bool) (all []string) {
	state, err := statedir.Find(a.state)
	if err != nil {
		return nil
	}
	v, err := runs.View(ctx, state, strings.TrimPrefix(ref, "run/"))
	if err != nil {
		return nil
	}
	for _, t := range slices.Backward(v.Turns) {
		all = append(all, fmt.Sprintf("turn/%d\t%s", t.Number, display.Line(safetext.Head(t.Prompt))))
	}
	for _, m := range slices.Backward(v.Messages) {
		for _, c := range slices.Backward(m.Calls()) {
			if calls {
				all = append(all, c.CallID+"\t"+display.Subject(c))
			}
		}
	}
	for n := v.Steps; n > 0; n-- {
		all = append(all, fmt.Sprintf("step/%d\tbefore the model was asked", n))
	}
	all = slices.DeleteFunc(all, func(p string) bool { return !strings.HasPrefix(p, typed) })
	return all[:min(len(all), maxCompletions)]
}

// completePlaces offers the places in the run that is named before.
func (a *app) completePlaces(calls bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.placesIn(cmd.Context(), args[0], typed, calls), inOrder
	}
}

// completeRunsAndPlaces offers runs that have not been typed yet, and behind RUN@ the places in it.
func (a *app) completeRunsAndPlaces(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	run, place, ok := cutPlace(typed)
	if !ok {
		refs, directive := a.completeAnyRun(cmd, nil, typed)
		return slices.DeleteFunc(refs, func(r string) bool { return slices.Contains(args, r) }), directive
	}
	all := a.placesIn(cmd.Context(), run, place, true)
	if strings.HasPrefix(placeEnd, place) {
		all = append([]string{placeEnd + "\tas it is now"}, all...)
	}
	for i := range all {
		all[i] = run + "@" + all[i]
	}
	return all, inOrder
}
