package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/internal/flags"
	"agentctl.dev/agentctl/runner/control/embedded"
	"agentctl.dev/agentctl/runner/statedir"
)

// streams are what the program writes to.
type streams struct{ Out, Err io.Writer }

// app is what all verbs share.
type app struct {
	streams
	state string
}

// run executes one command line and returns the exit code. The end of the context
// ends it in order.
func run(ctx context.Context, args []string, s streams) int {
	a := &app{streams: s}
	root := a.rootCmd()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return a.report(cmd, err)
}

func (a *app) rootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:   "agentd",
		Short: "Serve the Kubernetes API of agentctl's kinds",
		Long: `agentd keeps agents, models, tools, policies and runs as Kubernetes objects. Its
API server runs in this process and listens on this machine only; kubectl works
on it with the kubeconfig that it writes to its state folder.`,
		Example: `  agentd serve                             serve until a signal
  agentd serve --idle 30m                  serve until it is not used
  agentd stop                              stop the one that agentctl has started
  agentd token create --role viewer jane   make a token for jane`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          subcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &usageError{flags.Explain(cmd, err)} })
	root.PersistentFlags().StringVar(&a.state, "state", "", "`folder` that holds everything (default $AGENTCTL_STATE, else the XDG state folder)")
	_ = root.MarkPersistentFlagDirname("state") // fails only for a flag that is not there
	root.AddCommand(a.serveCmd(), a.stopCmd(), a.tokenCmd(), a.versionCmd())
	return root
}

// stateDir is the state folder, the same that agentctl means.
func (a *app) stateDir() (string, error) { return statedir.Find(a.state) }

// usageError is a command line that cannot be understood: exit code 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// exactly wants n arguments, which what names.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < n:
			return usagef("%s is missing", what)
		case len(args) > n:
			return usagef("unexpected argument %q", args[n])
		}
		return nil
	}
}

// subcommand refuses a word that is not a command of its parent.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	if s := reason.Nearest(args[0], known); s != "" {
		return usagef("unknown command %q; did you mean %s %s?", args[0], cmd.CommandPath(), s)
	}
	return usagef("unknown command %q", args[0])
}

// hintOf is the next step after an error of the control plane, or "".
func hintOf(err error) string {
	if e, ok := errors.AsType[*embedded.Error](err); ok {
		return e.Hint
	}
	if e, ok := errors.AsType[*embedded.HeldError](err); ok && e.PID > 0 {
		return fmt.Sprintf("agentctl and kubectl work on that one (process %d); agentd stop ends it", e.PID)
	}
	switch {
	case errors.Is(err, embedded.ErrTokenExists):
		return "a new one in its place: agentd token rotate NAME"
	case errors.Is(err, embedded.ErrTokenUnknown):
		return "see which there are: agentd token list"
	}
	return ""
}

// report shows an error and returns its exit code: 2 for a command line that
// cannot be understood, 1 for any other.
func (a *app) report(cmd *cobra.Command, err error) int {
	if err == nil {
		return reason.ExitOK
	}
	fmt.Fprintf(a.Err, "error: %v\n", err)
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(a.Err, "hint: %s\n", hint)
	}
	if u, ok := errors.AsType[*reason.UsageError](err); ok {
		if u.Hint != "" {
			fmt.Fprintf(a.Err, "hint: %s\n", u.Hint)
		}
		return reason.ExitUsage
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintf(a.Err, "see: %s --help\n", cmd.CommandPath())
		return reason.ExitUsage
	}
	return reason.ExitFailed
}
