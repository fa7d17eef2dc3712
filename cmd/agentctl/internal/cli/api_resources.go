package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

type apiResourcesOptions struct {
	app       *app
	noHeaders bool
	output    choice
}

func (a *app) apiResourcesCmd() *cobra.Command {
	o := &apiResourcesOptions{app: a, output: newChoice(display.FormatText, display.FormatName)}
	cmd := &cobra.Command{
		Use:   "api-resources",
		Short: "List the kinds and what they are called",
		Example: `  agentctl api-resources
  agentctl api-resources -o name`,
		GroupID: groupObject,
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return o.runAPIResources() },
	}
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave out the names of the columns")
	output(cmd, &o.output, "format: a table, or names")
	return cmd
}

func (o *apiResourcesOptions) runAPIResources() error {
	rows := [][]string{{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"}}
	group, _, _ := strings.Cut(crds.GroupVersion, "/")
	var names strings.Builder
	for _, kind := range crds.Kinds() {
		k, _ := crds.Kind(kind)
		rows = append(rows, []string{k.Plural, strings.Join(k.ShortNames, ","), crds.GroupVersion, "true", kind})
		names.WriteString(k.Plural + "." + group + "\n")
	}
	if o.output.value == display.FormatName {
		return display.Text(o.app.stdout(), names.String())
	}
	if o.noHeaders {
		rows = rows[1:]
	}
	return display.Columns(o.app.stdout(), rows)
}
