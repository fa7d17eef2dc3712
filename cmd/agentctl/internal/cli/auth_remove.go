package cli

import (
	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/keys"
	"agentctl.dev/agentctl/runner/statedir"
)

func (a *app) authRemoveCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Forget the stored value of a key",
		Long: `Forget the stored value of a key. What the environment sets stays.

Exit codes: 0 it is gone; 2 there was none; 4 the folder cannot be used, because
others may read or change it.`,
		Example:           `  agentctl auth remove OPENAI_API_KEY`,
		Args:              keyName,
		ValidArgsFunction: a.completeStoredKeys,
		RunE:              func(_ *cobra.Command, args []string) error { return a.runAuthRemove(args[0]) },
	}
	a.stateFlag(cmd)
	return cmd
}

func (a *app) runAuthRemove(name string) error {
	state, err := statedir.Find(a.state)
	if err != nil {
		return err
	}
	if err := keys.Remove(state, name); err != nil {
		return err
	}
	display.Notice(a.stderr(), "removed "+name)
	return nil
}

func (a *app) completeStoredKeys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	state, err := statedir.Find(a.state)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := keys.Names(state)
	return names[:min(len(names), maxCompletions)], cobra.ShellCompDirectiveNoFileComp
}
