package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/pluginkit"
)

func (a *app) pluginCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "plugin",
		Short:   "Create, call and test a tool of your own",
		GroupID: groupManifest,
		Args:    subcommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.pluginInitCmd(), a.pluginCallCmd(), a.pluginTestCmd())
	return cmd
}

// pluginFlags are those of verbs that start a tool's program.
type pluginFlags struct {
	exec      bool
	env       []string
	workspace string
	isolation choice
	mounts    []string
}

func (f *pluginFlags) add(cmd *cobra.Command, workspace string) {
	cmd.Flags().BoolVar(&f.exec, "exec", false, "the program is started for each call and reads its arguments from stdin (source.exec)")
	cmd.Flags().StringArrayVar(&f.env, "env", nil, "a `NAME=value` of the program's environment; may be repeated")
	f.isolation = newChoice(string(v1alpha1.IsolationNone), string(v1alpha1.IsolationSandbox))
	cmd.Flags().Var(&f.isolation, "isolation", "level at which the program is started: "+f.isolation.list())
	_ = cmd.RegisterFlagCompletionFunc("isolation", f.isolation.complete) // fails only for a flag that is not there
	cmd.Flags().StringArrayVar(&f.mounts, "mount", nil, "`path` that the program may read in a sandbox besides its own file and /usr; may be repeated")
	cmd.Flags().StringVar(&f.workspace, "workspace", "", "`folder` the program works in (default "+workspace+")")
	_ = cmd.MarkFlagDirname("workspace") // fails only for a flag that is not there
}

// stoppable ends a context when a signal comes. Its second result is the exit
// that a signal asks for, or the error as it is.
func stoppable(parent context.Context) (context.Context, func(error) error) {
	ctx, signals := watch(parent, func(int) {})
	return ctx, func(err error) error {
		signals.stop()
		if s, ok := errors.AsType[runner.SignalError](context.Cause(ctx)); ok {
			return exit(s.ExitCode())
		}
		return err
	}
}

// samples reads calls of a tester: TOOL=JSON, or JSON alone for a program that
// is one tool.
func samples(flag string, values []string, exec bool) ([]pluginkit.Sample, error) {
	var all []pluginkit.Sample
	for _, v := range values {
		tool, args := "", v
		if !exec {
			var ok bool
			if tool, args, ok = strings.Cut(v, "="); !ok || tool == "" || strings.HasPrefix(v, "{") {
				return nil, usagef("--%s %s: want TOOL=ARGUMENTS, for example --%s 'greet={\"name\": \"you\"}'", flag, v, flag)
			}
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(args), &object); err != nil || object == nil {
			return nil, usagef("--%s: the arguments are not a JSON object: %s", flag, args)
		}
		all = append(all, pluginkit.Sample{Tool: tool, Args: json.RawMessage(args)})
	}
	return all, nil
}
