package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/policy/shellfacts"
)

type policyFactsOptions struct {
	app    *app
	output choice
}

func (a *app) policyFactsCmd() *cobra.Command {
	o := &policyFactsOptions{app: a, output: newChoice(display.FormatJSONL)}
	cmd := &cobra.Command{
		Use:   "facts",
		Short: "Show what shell commands do, as rules see it",
		Long: `Show what shell commands do, as rules see it. Nothing is run.

Each line of stdin is a command as a JSON string; each line of stdout is its
object, in the same order, written as soon as the line is read:

  commands  names of the simple commands that can run; "?" is not known
  writes    paths as written, with ~ for the home folder; "?" is not known
  reads     the same
  network   something can open a connection
  dynamic   not all commands and paths are known before it runs: policies ask
  opaque    what a command does is not known: rules that allow do not hold
  details   arguments, wrappers, hosts, reasons

A line that is not a JSON string gives {"error": ..., "dynamic": true}.`,
		Example: `  echo '"cargo check > ~/.zshrc"' | agentctl policy facts
  jq -c .command calls.jsonl | agentctl policy facts -o jsonl | jq -c .writes`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runPolicyFacts(cmd.Context()) },
	}
	output(cmd, &o.output, "format: one object a line")
	return cmd
}

func (o *policyFactsOptions) runPolicyFacts(ctx context.Context) error {
	lines := display.NewLines(o.app.stdout())
	return shellfacts.Read(ctx, o.app.In, func(l shellfacts.Line) error { return lines.Add(l) }, lines.Flush)
}
