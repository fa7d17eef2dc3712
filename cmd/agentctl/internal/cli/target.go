package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/statedir"
)

const groupObject = "object"

// target says which control plane a verb talks with, and about which namespace.
type target struct {
	app       *app
	context   string
	namespace string
}

// flags adds --context, --namespace and --state.
func (t *target) flags(cmd *cobra.Command) {
	t.contextFlag(cmd)
	cmd.Flags().StringVarP(&t.namespace, "namespace", "n", "", "`namespace` of the objects (default that of the context)")
	_ = cmd.RegisterFlagCompletionFunc("namespace", cobra.NoFileCompletions) // fails only for a flag that is not there
}

func (t *target) contextFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.context, "context", "", "`name` of the control plane to talk with (default $AGENTCTL_CONTEXT, else that of the kubeconfig, else local)")
	_ = cmd.RegisterFlagCompletionFunc("context", t.app.completeContexts) // fails only for a flag that is not there
	t.app.stateFlag(cmd)
}

// config reads where there is something to talk with.
func (t *target) config() (*client.Config, error) {
	state, err := statedir.Find(t.app.state)
	if err != nil {
		return nil, err
	}
	return client.LoadConfig(state, t.context, t.app.getenv)
}

// connect returns a client, and starts the local control plane where that is
// what is meant.
func (t *target) connect(ctx context.Context) (*client.Client, error) {
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	return config.Connect(ctx, client.ConnectOptions{Notice: func(text string) { display.Notice(t.app.stderr(), text) }})
}

// meant reports whether a control plane is named, by a flag or the environment.
func (t *target) meant() bool {
	for _, name := range []string{"AGENTCTL_CONTEXT", "AGENTCTL_KUBECONFIG"} {
		if t.app.getenv(name) != "" {
			return true
		}
	}
	return t.context != "" || t.namespace != ""
}

func (a *app) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	t := target{app: a}
	config, err := t.config()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, c := range config.Contexts() {
		names = append(names, c.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
