package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/keys"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/statedir"
)

type authSetOptions struct{ app *app }

func (a *app) authSetCmd() *cobra.Command {
	o := &authSetOptions{app: a}
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Store the value of a key for valueFrom.env",
		Long: `Store the value of a key for valueFrom.env.

NAME is an environment variable. Where a manifest says valueFrom: {env: NAME} and
the environment does not set NAME, the stored value is taken; the environment
wins. The value is read from stdin, or typed on the terminal without being shown;
it is never an argument. It is stored as one file that only you may read, in the
folder credentials of the state folder, which no tool can see.

Exit codes: 0 it is stored; 2 the name or the value is none; 4 the folder cannot
be used, because others may read or change it.`,
		Example: `  agentctl auth set OPENAI_API_KEY
  agentctl auth set ANTHROPIC_API_KEY < key.txt
  pass show gemini | agentctl auth set GEMINI_API_KEY`,
		Args:              keyName,
		ValidArgsFunction: completeKeyVariables,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runSet(cmd.Context(), args[0]) },
	}
	cmd.SetFlagErrorFunc(func(*cobra.Command, error) error {
		// A key may begin with a dash, and the error would repeat it.
		return usagef("a flag is not understood; the value is read from stdin and is not an argument")
	})
	a.stateFlag(cmd)
	return cmd
}

func (o *authSetOptions) runSet(ctx context.Context, name string) error {
	state, err := statedir.Find(o.app.state)
	if err != nil {
		return err
	}
	value, err := o.value(ctx, name)
	if err != nil {
		return err
	}
	if err := keys.Set(state, name, value); err != nil {
		return err
	}
	text := "stored " + name
	if _, set := os.LookupEnv(name); set {
		text += "; the environment sets it too, and wins"
	}
	display.Notice(o.app.stderr(), text)
	return nil
}

func (o *authSetOptions) value(ctx context.Context, name string) ([]byte, error) {
	if f, ok := o.app.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return hidden(ctx, f, func() {
			display.Notice(o.app.stderr(), "value of "+name+" (it is not shown; Enter ends it):")
		})
	}
	// One byte more than a value with its line break shows that there is more.
	b, err := io.ReadAll(io.LimitReader(o.app.In, keys.MaxSize+3))
	if err != nil {
		return nil, usagef("read the value from stdin: %w", err)
	}
	return b, nil
}

func completeKeyVariables(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return provider.KeyVariables(), cobra.ShellCompDirectiveNoFileComp
}
