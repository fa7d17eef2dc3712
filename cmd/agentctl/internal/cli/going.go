package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

// maxNamed bounds the names that an error lists.
const maxNamed = 5

// goingOn are the runs in progress: those of the selected control plane, if it
// runs, and those of other terminals.
func (t *target) goingOn(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	names := t.goingThere(ctx)
	state, err := statedir.Find(t.app.state)
	if err != nil || t.context != "" || t.namespace != "" {
		return names
	}
	here, _ := runs.List(ctx, state) // a second error would not help
	for i := range here {
		if r := &here[i]; r.Phase == view.Running && !ofObject(r.Name) {
			names = append(names, "run/"+r.Name)
		}
	}
	return names
}

func (t *target) goingThere(ctx context.Context) []string {
	config, err := t.config()
	if err != nil {
		return nil
	}
	c, err := config.Connect(ctx, client.ConnectOptions{OnlyRunning: true})
	if err != nil {
		return nil
	}
	defer c.Close()
	found, _, _ := c.List(ctx, client.ListOptions{Kind: v1alpha1.KindRun, Namespace: t.namespace}) // as above
	var names []string
	for _, x := range found {
		if !v1alpha1.Phase(x.Text("status", "phase")).Finished() {
			names = append(names, "run/"+x.Name())
		}
	}
	return names
}

// only adds the names of the runs in progress to an error about a run that does
// not exist: only these take messages.
func (t *target) only(ctx context.Context, word string, err error) error {
	if _, unknown := errors.AsType[*reason.UsageError](err); !unknown || t.known(word) {
		return err
	}
	hint := "no run is in progress; agentctl get runs lists the others"
	if names := t.goingOn(ctx); len(names) > 0 {
		hint = "in progress: " + listed(names)
	}
	return reason.Usagef("run %q: there is no such run", strings.TrimPrefix(word, "run/")).WithHint(hint)
}

// known reports whether a word names a run of the state folder, or begins like one.
func (t *target) known(word string) bool {
	state, err := statedir.Find(t.app.state)
	if err != nil {
		return false
	}
	word = strings.TrimPrefix(word, "run/")
	ids, err := runs.IDs(state)
	return err == nil && (strings.HasPrefix(word, "@") || slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, word) }))
}

// listed are names as a sentence holds them.
func listed(names []string) string {
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if len(names) > maxNamed {
		text += ", …"
	}
	return text
}

// completeGoing offers the runs in progress.
func (a *app) completeGoing(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	t := target{app: a}
	t.context, _ = cmd.Flags().GetString("context")
	t.namespace, _ = cmd.Flags().GetString("namespace")
	names := t.goingOn(context.WithoutCancel(cmd.Context()))
	return names[:min(len(names), maxCompletions)], cobra.ShellCompDirectiveNoFileComp
}
