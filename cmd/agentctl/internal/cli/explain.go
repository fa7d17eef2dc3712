package cli

import (
	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

type explainOptions struct {
	app       *app
	recursive bool
}

func (a *app) explainCmd() *cobra.Command {
	o := &explainOptions{app: a}
	cmd := &cobra.Command{
		Use:   "explain KIND[.FIELD...]",
		Short: "Describe a field of a manifest",
		Example: `  agentctl explain agent
  agentctl explain agent.spec.limits
  agentctl explain policy.spec --recursive`,
		GroupID:           groupManifest,
		Args:              oneArg("the field (for example agent.spec.limits)"),
		ValidArgsFunction: completeFields,
		RunE:              func(_ *cobra.Command, args []string) error { return o.runExplain(args[0]) },
	}
	cmd.Flags().BoolVar(&o.recursive, "recursive", false, "show the fields below as a tree")
	return cmd
}

func (o *explainOptions) runExplain(path string) error {
	e, err := crds.Explain(path, o.recursive)
	if err != nil {
		return usage(err)
	}
	return display.Text(o.app.stdout(), e.Text())
}
