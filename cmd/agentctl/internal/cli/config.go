package cli

import (
	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

func (a *app) configCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Choose the control plane to talk with",
		Long: `Choose the control plane to talk with.

A context is a control plane by a name. "local" is the one of the state folder,
which is started when it is needed; the others are in the kubeconfig files
that AGENTCTL_KUBECONFIG, else KUBECONFIG, names.

The flag --context comes first, then AGENTCTL_CONTEXT, then current-context of
the files, then local. kubectl's own file, ~/.kube/config, is not looked at
unless it is named.`,
		GroupID: groupObject,
		Args:    subcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.getContextsCmd(), a.currentContextCmd(), a.useContextCmd(), a.configViewCmd())
	return cmd
}

func (a *app) getContextsCmd() *cobra.Command {
	t := &target{app: a}
	shown := newChoice(display.FormatText, display.FormatName)
	cmd := &cobra.Command{
		Use:     "get-contexts",
		Short:   "List the contexts",
		Example: "  agentctl config get-contexts",
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return t.runGetContexts(shown.value) },
	}
	output(cmd, &shown, "format: a table, or names")
	t.contextFlag(cmd)
	return cmd
}

func (t *target) runGetContexts(shown string) error {
	config, err := t.config()
	if err != nil {
		return err
	}
	rows := [][]string{{"CURRENT", "NAME", "SERVER", "USER", "NAMESPACE"}}
	text := ""
	for _, c := range config.Contexts() {
		current := ""
		if c.Current {
			current = "*"
		}
		rows = append(rows, []string{current, c.Name, c.Server, c.User, c.Namespace})
		text += c.Name + "\n"
	}
	if shown == display.FormatName {
		return display.Text(t.app.stdout(), text)
	}
	return display.Columns(t.app.stdout(), rows)
}

func (a *app) currentContextCmd() *cobra.Command {
	t := &target{app: a}
	cmd := &cobra.Command{
		Use:   "current-context",
		Short: "Name the context that is meant when none is named",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			config, err := t.config()
			if err != nil {
				return err
			}
			return display.Text(a.stdout(), config.Current()+"\n")
		},
	}
	t.contextFlag(cmd)
	return cmd
}

func (a *app) useContextCmd() *cobra.Command {
	t := &target{app: a}
	cmd := &cobra.Command{
		Use:   "use-context NAME",
		Short: "Make a context the current one of its kubeconfig",
		Args:  oneArg("the context"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeContexts(cmd, args, typed)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			config, err := t.config()
			if err != nil {
				return err
			}
			path, err := config.Use(args[0])
			if err != nil {
				return err
			}
			text := "the context is now " + args[0]
			if path != "" {
				text += " (" + path + ")"
			}
			display.Notice(a.stderr(), text)
			return nil
		},
	}
	a.stateFlag(cmd)
	return cmd
}

func (a *app) configViewCmd() *cobra.Command {
	t := &target{app: a}
	cmd := &cobra.Command{
		Use:   "view",
		Short: "Show the contexts and the file of each, without secrets",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return t.runConfigView() },
	}
	t.contextFlag(cmd)
	return cmd
}

// viewedContext is a context as config view shows it.
type viewedContext struct {
	Name      string `json:"name"`
	Server    string `json:"server,omitempty"`
	User      string `json:"user,omitempty"`
	Namespace string `json:"namespace"`
	File      string `json:"file,omitempty"`
}

func (t *target) runConfigView() error {
	config, err := t.config()
	if err != nil {
		return err
	}
	view := struct {
		Current  string          `json:"currentContext"`
		Origin   string          `json:"origin"`
		State    string          `json:"state"`
		Contexts []viewedContext `json:"contexts"`
	}{Current: config.Current(), Origin: config.Origin, State: config.State}
	for _, c := range config.Contexts() {
		view.Contexts = append(view.Contexts, viewedContext{c.Name, c.Server, c.User, c.Namespace, c.File})
	}
	return display.WriteYAML(t.app.stdout(), view)
}
