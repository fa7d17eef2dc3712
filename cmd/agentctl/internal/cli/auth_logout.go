package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/connect"
)

func (a *app) authLogoutCmd() *cobra.Command {
	server := ""
	cmd := &cobra.Command{
		Use:   "logout TOOL",
		Short: "Forget the login at the MCP server of a Tool",
		Long: `Forget the login at the MCP server of a Tool, and give its token back where the
authorization server takes it. Where Tools of several manifests have the name,
all their logins are forgotten, unless --server names one.

Exit codes: 0 it is forgotten; 2 there was none.`,
		Example: `  agentctl auth logout tickets
  agentctl auth logout tickets --server https://mcp.example.com/mcp`,
		Args:              oneTool,
		ValidArgsFunction: a.completeLogins,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runLogout(cmd.Context(), args[0], server)
		},
	}
	cmd.Flags().StringVar(&server, "server", "", "`URL` of the server, as the Tool has it")
	a.stateFlag(cmd)
	return cmd
}

func (a *app) runLogout(parent context.Context, tool, server string) error {
	ctx, settle := stoppable(parent)
	gone, left, err := connect.LogOut(ctx, a.state, tool, server)
	if err = settle(err); err != nil {
		return err
	}
	if len(gone) == 0 {
		return usagef("there is no login of tool %q", tool).try("agentctl auth status")
	}
	for _, l := range gone {
		display.Notice(a.stderr(), "forgot the login of "+l.Tool+" at "+l.Server)
	}
	for _, err := range left {
		display.Notice(a.stderr(), "warning: "+err.Error()+": end the session there yourself")
	}
	return nil
}
