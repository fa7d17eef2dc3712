package cli

import (
	"strings"

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
		Use:   "explain [KIND[.FIELD...]]",
		Short: "Describe a kind or a field of a manifest; without a word list the kinds",
		Example: `  agentctl explain
  agentctl explain agent
  agentctl explain agent.spec.limits
  agentctl explain policy.spec --recursive`,
		GroupID: groupManifest,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("unexpected argument %q: one field is explained", args[1])
			}
			return nil
		},
		ValidArgsFunction: completeFields,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.listKinds()
			}
			return o.runExplain(args[0])
		},
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

// listKinds lists the kinds, each with the first sentence about it.
func (o *explainOptions) listKinds() error {
	rows := [][]string{{"KIND", "WHAT IT IS"}}
	for _, kind := range crds.Kinds() {
		e, err := crds.Explain(kind, false)
		if err != nil {
			return usage(err)
		}
		sentence, _, _ := strings.Cut(strings.ReplaceAll(e.Field.Description, "\n", " ")+" ", ". ")
		rows = append(rows, []string{kind, strings.TrimSuffix(strings.TrimSpace(sentence), ".")})
	}
	return display.Table(o.app.stdout(), rows)
}
