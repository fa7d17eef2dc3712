package cli

import "github.com/spf13/cobra"

func (a *app) mcpCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "mcp",
		Short:   "Serve agents and tools over the Model Context Protocol, and test servers",
		GroupID: groupManifest,
		Args:    subcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.mcpServeCmd(), a.mcpTestCmd(), a.mcpPromptCmd(), a.mcpResourceCmd())
	return cmd
}
