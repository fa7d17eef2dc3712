package cli

import "github.com/spf13/cobra"

func (a *app) policyCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "policy",
		Short:   "Test policies and explain their decisions",
		GroupID: groupManifest,
		Args:    subcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.policyTestCmd(), a.policyFactsCmd(), a.policyExplainCmd(), a.policyReplayCmd())
	return cmd
}
