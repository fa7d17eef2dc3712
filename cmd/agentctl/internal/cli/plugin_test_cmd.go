package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/pluginkit"
)

type pluginTestOptions struct {
	app        *app
	program    pluginFlags
	good, slow []string
	output     choice
}

func (a *app) pluginTestCmd() *cobra.Command {
	o := &pluginTestOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON, display.FormatJUnit)}
	cmd := &cobra.Command{
		Use:   "test PROGRAM [ARGUMENT...]",
		Short: "Try whether a tool's program keeps its promises",
		Long: `Try whether a tool's program keeps its promises, in whatever language it is
written: handshake, schema, bad arguments, large requests, parallel calls,
deadline, cancel, output, panic, stdout, stdin, environment, orphans, shutdown.

Your own tools are called with arguments they must refuse, and besides that only
as you say: with --call, which must be answered, and with --slow, which must take
long and end at a deadline and when it is cancelled. The rest is tried with probe
tools, which the program serves to this command alone; the SDK in Go and the
programs of "agentctl plugin init" bring them along. Without them much is skipped.

Exit code 0: no promise is broken, perhaps some could not be tried. 1: one is
broken. 2: the command line is wrong. 8: this host gives no sandbox. 130, 143:
stopped by a signal.`,
		Example: `  agentctl plugin test ./bin/greet
  agentctl plugin test ./bin/greet --call 'greet={"name": "you"}' --slow 'greet={"name": "you", "wait": 60}'
  agentctl plugin test ./tools/greet.py --isolation Sandbox --mount tools
  agentctl plugin test -o junit -- python3 tools/main.py > report.xml
  agentctl plugin test --exec ./count.sh --call '{"file": "/dev/null"}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("the program is missing")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.runPluginTest(cmd.Context(), args) },
	}
	o.program.add(cmd, "an empty one")
	cmd.Flags().StringArrayVar(&o.good, "call", nil, "a call that must be answered, as `TOOL=ARGUMENTS` (with --exec ARGUMENTS); may be repeated")
	cmd.Flags().StringArrayVar(&o.slow, "slow", nil, "a call that takes long, as `TOOL=ARGUMENTS`; may be repeated")
	output(cmd, &o.output, "format: a line for each promise, one object, or XML for a CI server")
	return cmd
}

func (o *pluginTestOptions) runPluginTest(parent context.Context, command []string) error {
	good, err := samples("call", o.good, o.program.exec)
	if err != nil {
		return err
	}
	slow, err := samples("slow", o.slow, o.program.exec)
	if err != nil {
		return err
	}
	opts := pluginkit.TestOptions{Program: o.program.program(command), Good: good, Slow: slow}
	if o.program.workspace == "" {
		if opts.Workspace, err = os.MkdirTemp("", "agentctl-test-"); err != nil {
			return fmt.Errorf("make an empty workspace: %w", err)
		}
		defer func() { _ = os.RemoveAll(opts.Workspace) }()
	}
	ctx, settle := stoppable(parent)
	report, err := pluginkit.Test(ctx, opts)
	if err = settle(err); err != nil {
		return err
	}
	if err := o.write(report, command); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if report.Failed > 0 {
		return exit(reason.ExitFailed)
	}
	return nil
}

func (o *pluginTestOptions) write(report *pluginkit.Report, command []string) error {
	shown := display.PluginTest{Report: report, Command: strings.Join(command, " ")}
	switch o.output.value {
	case display.FormatJSON:
		return display.WriteObject(o.app.stdout(), report)
	case display.FormatJUnit:
		return shown.WriteJUnit(o.app.stdout())
	}
	return shown.WriteText(o.app.stdout())
}
