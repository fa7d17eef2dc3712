package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/runner"
)

// maxCompletions bounds a list a shell shows.
const maxCompletions = 50

// completeRuns offers the runs of the state folder, newest first.
func (a *app) completeRuns(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if len(args) > 0 {
		return nil, directive
	}
	refs := []string{"@latest"}
	state, err := runner.StateDir(a.state)
	if err != nil {
		return refs, directive
	}
	ids, err := runner.Runs(state)
	if err != nil {
		return refs, directive
	}
	for _, id := range ids[:min(len(ids), maxCompletions)] {
		refs = append(refs, "run/"+id)
	}
	return refs, directive
}

func (a *app) completeRunFlags(cmd *cobra.Command) {
	_ = cmd.MarkFlagDirname("workspace") // these fail only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("approve", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"never", "prompt", "all", "all,R3"}, cobra.ShellCompDirectiveDefault
	})
	for _, name := range []string{"agent", "model", "input", "prompt", "timeout"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
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
	return append(lowerKinds(), schemaResult, schemaEvent), cobra.ShellCompDirectiveNoFileComp
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
