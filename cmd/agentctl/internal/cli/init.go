package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/opencode"
	"agentctl.dev/agentctl/runner/templates"
)

type initOptions struct {
	app        *app
	ci, output choice
	from       string
}

func (a *app) initCmd() *cobra.Command {
	o := &initOptions{app: a, ci: newChoice(templates.Pipelines()...), output: newChoice(display.FormatText, display.FormatJSON)}
	o.ci.value = ""
	cmd := &cobra.Command{
		Use:   "init [TEMPLATE [FOLDER]] | init --from FILE [FOLDER]",
		Short: "Begin a set of manifests from a template",
		Long: `Begin a set of manifests from a template: an agent with a pinned model, a policy,
tests that need no key, a recording, pipelines and a README. Without a template
the templates are listed.

The set is written to FOLDER, agents/TEMPLATE by default, which must not hold anything
yet: no file is replaced. With --ci its pipeline is written as well, to
.github/workflows/ or .gitlab/ below the current folder.

With --from the set is made of a configuration of OpenCode: its agents, models, MCP
servers and permissions, in agents/opencode by default. What is carried over and what is
not is listed, each with its place in the file as a JSON Pointer.

Exit code 0: written or listed. 2: the command line is wrong, or there are files
already.`,
		Example: `  agentctl init                                # the templates
  agentctl init reviewer --ci github
  agentctl init docs-drift bots/docs           # and then: agentctl test -f bots/docs
  agentctl init --from opencode.json           # and then: agentctl validate -f agents/opencode
  agentctl init -o json`,
		GroupID:           groupManifest,
		Args:              o.args,
		ValidArgsFunction: o.completeTemplates,
		RunE:              func(_ *cobra.Command, args []string) error { return o.runInit(args) },
	}
	cmd.Flags().Var(&o.ci, "ci", "also write the pipeline for "+o.ci.list())
	_ = cmd.RegisterFlagCompletionFunc("ci", o.ci.complete) // fails only for a flag that is not there
	cmd.Flags().StringVar(&o.from, "from", "", "carry over a configuration of OpenCode, opencode.json or opencode.jsonc")
	output(cmd, &o.output, "format: a report, or one object")
	return cmd
}

// args are a template and a folder, or a folder with --from.
func (o *initOptions) args(cmd *cobra.Command, args []string) error {
	from := cmd.Flags().Changed("from")
	switch {
	case from && cmd.Flags().Changed("ci"):
		return usagef("--ci is for templates, and --from takes none")
	case from && o.from == "":
		return usagef("--from names no file")
	case from && len(args) > 1:
		return usagef("unexpected argument %q after the folder", args[1])
	case from:
		return nil
	case len(args) > 2:
		return usagef("unexpected argument %q after the template and its folder", args[2])
	case len(args) == 0 && cmd.Flags().Changed("ci"):
		return usagef("--ci is without a template")
	}
	return nil
}

func (o *initOptions) completeTemplates(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || o.from != "" {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	var names []string
	for _, t := range templates.All() {
		if strings.HasPrefix(t.Name, toComplete) {
			names = append(names, t.Name+"\t"+t.Does)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (o *initOptions) runInit(args []string) error {
	if o.from != "" {
		return o.carryOver(strings.Join(args, ""))
	}
	if len(args) == 0 {
		return o.list()
	}
	w := templates.WriteOptions{Template: args[0], CI: o.ci.value}
	if len(args) > 1 {
		w.Dir = args[1]
	}
	written, err := templates.Write(w)
	if err != nil {
		return err
	}
	if o.output.value == display.FormatJSON {
		err = display.WriteObject(o.app.stdout(), written)
	} else {
		err = display.BegunSet(o.app.stdout(), written.Dir, written.Files, written.Pipeline)
	}
	if err != nil {
		return fmt.Errorf("write the list of files: %w", err)
	}
	return nil
}

// carryOver makes manifests of a configuration of OpenCode.
func (o *initOptions) carryOver(dir string) error {
	r, err := opencode.Write(o.from, dir)
	if err != nil {
		return err
	}
	if o.output.value == display.FormatJSON {
		err = display.WriteObject(o.app.stdout(), r)
	} else {
		rows := make([]display.CarriedOver, 0, len(r.Carried)+len(r.Left))
		for _, c := range r.Carried {
			rows = append(rows, display.CarriedOver{At: c.At, To: c.To, Why: c.Stricter})
		}
		for _, l := range r.Left {
			rows = append(rows, display.CarriedOver{At: l.At, Why: l.Why})
		}
		err = display.CarriedSet(o.app.stdout(), r.Dir, r.Files, rows)
	}
	if err != nil {
		return fmt.Errorf("write the list of what is carried over: %w", err)
	}
	return nil
}

// templateList is what programs read of the templates.
type templateList struct {
	Templates []templates.Template `json:"templates"`
}

func (o *initOptions) list() error {
	all := templates.All()
	var err error
	if o.output.value == display.FormatJSON {
		err = display.WriteObject(o.app.stdout(), templateList{all})
	} else {
		rows := make([][]string, len(all))
		for i, t := range all {
			rows[i] = []string{t.Name, t.Alias, t.Does}
		}
		err = display.Templates(o.app.stdout(), rows)
	}
	if err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return nil
}
