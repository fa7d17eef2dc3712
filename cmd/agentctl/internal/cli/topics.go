package cli

import (
	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

// exitCodesTopic is "agentctl help exit-codes". A command without Run is a help
// topic; its text is made when it is asked for.
func (a *app) exitCodesTopic() *cobra.Command {
	cmd := &cobra.Command{Use: "exit-codes", Short: "What the exit codes and reasons mean"}
	cmd.SetHelpFunc(func(*cobra.Command, []string) {
		_ = display.ExitCodes(a.stdout(), reason.All()) // help has nobody to tell about a closed pipe
	})
	return cmd
}
