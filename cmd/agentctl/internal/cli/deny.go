package cli

import (
	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

func (a *app) denyCmd() *cobra.Command {
	o := &approveOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "deny RUN/CALL | APPROVAL",
		Short: "Refuse a call that waits for an approval",
		Long: `Refuse a call that waits for an approval. "agentctl approve" lists these calls and
their names.

The model reads that the call was refused, with --reason why, and the run
continues. A running call gets a refusal as the answer to its question. With
--end-run the run ends instead, with exit code 3.

Exit codes: 0 the answer was taken, or kept for a resume; 1 the call was answered
or has ended already, or its run did not take the answer; 2 the call does not exist.`,
		Example: `  agentctl deny @latest --reason "use the staging database"
  agentctl deny hello-01k/call_1
  agentctl deny hello-01k/call_1 --end-run`,
		GroupID:           groupRun,
		Args:              oneArg("the call (RUN/CALL)"),
		ValidArgsFunction: a.completeWaiting,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runApprove(cmd.Context(), args[0]) },
	}
	cmd.Flags().StringVar(&o.reason, "reason", "", "a `text` that the model reads")
	cmd.Flags().BoolVar(&o.endRun, "end-run", false, "end the run as well")
	o.flags(cmd)
	return cmd
}
