package cli

import (
	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

// namesTopic is "agentctl help names".
func (a *app) namesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "names",
		Short: "How a run is named",
		Long: `Every command that takes a run finds it by each of these names:

  ID, run/ID                      its id, as "agentctl get runs" lists it
  NAME, run/NAME                  the name of a Run object of a control plane
  run.agentctl.dev/NAME           the same, as "-o name" prints it
  approval.agentctl.dev/NAME      the run that asks for this approval
  the beginning of an id or name  if only one run begins like this
  @latest                         the run that was started last

A whole name counts before the beginning of one. The state folder is looked at
first, then the control plane that is meant, if it runs; where --context or -n
name one, only that. No control plane is started to find a run. If several runs
fit, the error lists them.

A call is named by its run and its id, with / between them; "agentctl approve",
"agentctl deny" and "agentctl policy explain" take it.`,
	}
}

// exitCodesTopic is "agentctl help exit-codes". A command without Run is a help
// topic; its text is made when it is asked for.
func (a *app) exitCodesTopic() *cobra.Command {
	cmd := &cobra.Command{Use: "exit-codes", Short: "What the exit codes and reasons mean"}
	cmd.SetHelpFunc(func(*cobra.Command, []string) {
		_ = display.ExitCodes(a.stdout(), reason.All()) // a closed pipe cannot be reported
	})
	return cmd
}
