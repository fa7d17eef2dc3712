package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/runner/keys"
)

func (a *app) authCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "auth",
		Short:   "Store keys, log in at MCP servers, and check what an agent may do",
		GroupID: groupManifest,
		Args:    subcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.authSetCmd(), a.authListCmd(), a.authRemoveCmd(), a.authLoginCmd(), a.authLogoutCmd(), a.authStatusCmd(), a.canICmd())
	return cmd
}

// keyName reads the name of a key. Another text in its place is never
// repeated: it may be the value.
func keyName(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usagef("the name of an environment variable is missing, such as OPENAI_API_KEY")
	case len(args) > 1 || strings.Contains(args[0], "="):
		return usagef("one name is given, and never a value: on a command line others can see it, and the shell keeps it")
	}
	return keys.CheckName(args[0])
}
