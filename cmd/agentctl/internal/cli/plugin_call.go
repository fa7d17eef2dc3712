package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/pluginkit"
)

type pluginCallOptions struct {
	app     *app
	program pluginFlags
	args    string
	timeout time.Duration
	answers []string
	output  choice
}

func (a *app) pluginCallCmd() *cobra.Command {
	o := &pluginCallOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "call PROGRAM TOOL",
		Short: "Call a tool once and show what it answers",
		Long: `Call a tool of a program once and show what it answers, as a run would call it but
without a policy or a journal. The program can do whatever you can, unless you
start it with --isolation Sandbox.

The answer goes to stdout, progress to stderr.

Exit code 0: answered. 1: the answer is an error, or the tool could not be asked.
2: the command line is wrong. 8: this host gives no sandbox. 130, 143: stopped by
a signal.`,
		Example: `  agentctl plugin call ./bin/greet greet --args '{"name": "you"}'
  agentctl plugin call ./bin/greet greet --args @call.json -o json
  agentctl plugin call --exec ./count.sh --args '{"file": "README.md"}'`,
		Args: o.words,
		RunE: func(cmd *cobra.Command, args []string) error { return o.runPluginCall(cmd.Context(), args) },
	}
	o.program.add(cmd, "the current one")
	cmd.Flags().StringVar(&o.args, "args", "{}", "arguments of the call: a JSON `object`, or @FILE")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 2*time.Minute, "the call's time")
	cmd.Flags().StringArrayVar(&o.answers, "answer", nil, "`text` to answer the tool's next question with; may be repeated")
	output(cmd, &o.output, "format: the answer, or one object")
	return cmd
}

func (o *pluginCallOptions) words(_ *cobra.Command, args []string) error {
	want := 2
	if o.program.exec {
		want = 1
	}
	switch {
	case len(args) == 0:
		return usagef("the program is missing")
	case len(args) > want && o.program.exec:
		return usagef("unexpected argument %q: with --exec the program is the tool", args[1])
	case len(args) > want:
		return usagef("unexpected argument %q after the tool", args[want])
	case o.timeout <= 0:
		return usagef("--timeout must be more than 0")
	}
	return nil
}

func (o *pluginCallOptions) runPluginCall(parent context.Context, words []string) error {
	args, err := callArguments(o.args)
	if err != nil {
		return err
	}
	opts := pluginkit.CallOptions{
		Program: o.program.program(words[:1]), Args: args, Timeout: o.timeout, Answers: o.answers,
		Progress: func(text string) { display.Notice(o.app.stderr(), text) },
	}
	if len(words) > 1 {
		opts.Tool = words[1]
	}
	ctx, settle := stoppable(parent)
	answer, err := pluginkit.Call(ctx, opts)
	if err = settle(err); err != nil {
		return err
	}
	if o.output.value == display.FormatJSON {
		err = display.WriteObject(o.app.stdout(), answer)
	} else {
		err = display.PluginAnswer(o.app.stdout(), o.app.stderr(), answer)
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if answer.Error != "" {
		return exit(reason.ExitFailed)
	}
	return nil
}

// program is what the flags and words name.
func (f *pluginFlags) program(command []string) pluginkit.Program {
	p := pluginkit.Program{Command: command, Env: f.env, Exec: f.exec, Workspace: f.workspace, Isolation: v1alpha1.IsolationLevel(f.isolation.value), Mounts: f.mounts}
	if p.Workspace == "" {
		p.Workspace = "."
	}
	return p
}
