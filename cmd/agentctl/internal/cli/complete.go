package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

// maxCompletions bounds a list a shell shows.
const maxCompletions = 50

// inOrder keeps completions as they are listed.
const inOrder = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder

// localRuns are the runs of the state folder, newest first, as completions.
func (a *app) localRuns(args []string) []string {
	if len(args) > 0 {
		return nil
	}
	refs := []string{"@latest"}
	state, err := statedir.Find(a.state)
	if err != nil {
		return refs
	}
	ids, err := runs.IDs(state)
	if err != nil {
		return refs
	}
	for _, id := range ids[:min(len(ids), maxCompletions)] {
		refs = append(refs, "run/"+id)
	}
	return refs
}

// completeResumable offers the runs that can be resumed before the others.
func (a *app) completeResumable(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	refs := a.localRuns(args)
	state, err := statedir.Find(a.state)
	if err != nil || len(refs) < 2 {
		return refs, inOrder
	}
	latest, others := refs[:1], refs[1:]
	slices.SortStableFunc(others, func(a, b string) int { return order(state, a) - order(state, b) })
	return append(latest, others...), inOrder
}

// completeEnded offers the runs that can be given another turn.
func (a *app) completeEnded(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	refs := a.localRuns(nil)
	state, err := statedir.Find(a.state)
	if err != nil {
		return nil, inOrder
	}
	return slices.DeleteFunc(refs, func(ref string) bool {
		id := strings.TrimPrefix(ref, "run/")
		return id != runs.Latest && (ofObject(id) || !runs.Ended(state, id))
	}), inOrder
}

// order is 0 for a run that has not ended and 1 for any other.
func order(state, ref string) int {
	if runs.Ended(state, strings.TrimPrefix(ref, "run/")) {
		return 1
	}
	return 0
}

func (a *app) completeRunFlags(cmd *cobra.Command) {
	_ = cmd.MarkFlagDirname("workspace") // these fail only for a flag that is not there
	for _, name := range []string{"input", "prompt", "timeout", "name"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeDeclared(v1alpha1.KindAgent))
	_ = cmd.RegisterFlagCompletionFunc("policy", a.completeDeclared(v1alpha1.KindPolicy))
	_ = cmd.RegisterFlagCompletionFunc("skill", a.completeDeclared(v1alpha1.KindSkill))
	_ = cmd.RegisterFlagCompletionFunc("model", a.completeDeclared(v1alpha1.KindModel))
}

// completeDeclared offers the names of a kind: those that the files of -f declare, or
// without -f those of a control plane that runs.
func (a *app) completeDeclared(kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp
		var paths []string
		if f, ok := cmd.Flag("file").Value.(*fileList); ok {
			paths = slices.Compact(slices.Sorted(slices.Values(*f.paths))) // a completion parses the flags twice
		}
		paths = slices.DeleteFunc(paths, func(p string) bool { return p == "-" }) // stdin is the shell's
		if len(paths) == 0 {
			names := a.names(cmd, kind)
			return names[:min(len(names), maxCompletions)], directive
		}
		ctx, cancel := context.WithTimeout(context.Background(), completeTime)
		defer cancel()
		declared, err := runner.Declare(ctx, runner.DeclareOptions{Paths: paths, Stdin: strings.NewReader("")})
		if err != nil {
			return nil, directive
		}
		var names []string
		for _, x := range declared.Objects {
			if x.Kind == kind && len(names) < maxCompletions {
				names = append(names, x.Name)
			}
		}
		return names, directive
	}
}

// completeFields offers kinds, then the fields below what is typed.
func completeFields(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) > 0 {
		return nil, directive
	}
	parent, _, below := cutLast(typed, ".")
	if !below {
		return lowerKinds(), directive
	}
	e, err := crds.Explain(parent, false)
	if err != nil {
		return nil, directive
	}
	var paths []string
	for _, f := range e.Field.Fields {
		paths = append(paths, parent+"."+f.Name)
	}
	return paths, directive
}

func completeSchemas(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return append(lowerKinds(), schemaResult, schemaEvent, schemaAudit, schemaReceipt), cobra.ShellCompDirectiveNoFileComp
}

func lowerKinds() []string {
	kinds := crds.Kinds()
	for i := range kinds {
		kinds[i] = strings.ToLower(kinds[i])
	}
	return kinds
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
