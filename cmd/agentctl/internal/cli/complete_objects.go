package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/runner/client"
)

// completeTime is how long somebody who pressed Tab waits.
const completeTime = 5 * time.Second

// completeObjects offers kinds, then names of objects. Nothing is started for a
// completion.
func (a *app) completeObjects(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	word, slash := typed, false
	if len(args) > 0 {
		word = args[0]
	}
	word, _, slash = strings.Cut(word, "/")
	if len(args) == 0 && !slash {
		var kinds []string
		for _, k := range crds.Kinds() {
			kinds = append(kinds, plural(k))
		}
		return kinds, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) > 0 && slash {
		word, _, _ = strings.Cut(typed, "/")
	}
	kind, ok := crds.Resolve(word)
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	prefix := ""
	if slash {
		prefix = word + "/"
	}
	var names []string
	for _, name := range a.names(cmd, kind) {
		if !slices.Contains(args, prefix+name) {
			names = append(names, prefix+name)
		}
	}
	return names[:min(len(names), maxCompletions)], cobra.ShellCompDirectiveNoFileComp
}

// names are those of the objects of a kind, or none without a control plane.
func (a *app) names(cmd *cobra.Command, kind string) []string {
	t := target{app: a}
	t.context, _ = cmd.Flags().GetString("context")
	t.namespace, _ = cmd.Flags().GetString("namespace")
	config, err := t.config()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	c, err := config.Connect(ctx, client.ConnectOptions{OnlyRunning: true})
	if err != nil {
		return nil
	}
	defer c.Close()
	objects, _, err := c.List(ctx, client.ListOptions{Kind: kind, Namespace: t.namespace})
	if err != nil {
		return nil
	}
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.Name()
	}
	return names
}
