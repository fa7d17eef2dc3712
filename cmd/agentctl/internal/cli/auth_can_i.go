package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/decisions"
)

type canIOptions struct {
	app              *app
	files            []string
	agent, workspace string
	below, policies  []string
	noRepository     bool
	args             string
	output           choice
}

func (a *app) canICmd() *cobra.Command {
	o := &canIOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "can-i call TOOL",
		Short: "Say whether a call would be allowed, by which rule, and what would have to change",
		Long: `Say whether a call would be allowed, by which rule, and what would have to change.

The call is judged as a run of the agent would judge its first one. Nothing is
run, asked or written. --below judges a subagent's call under what bounds it
there. Of a call that starts agents it is listed which, and what bounds them.

Exit code 0: allowed. 3: denied, asked about, or changed by a redaction. 2: the
command line, the arguments or a manifest is wrong.`,
		Example: `  agentctl auth can-i call bash -f manifests --agent reviewer --args '{"command": "git push"}'
  agentctl auth can-i call read -f . --args '{"path": ".env"}' -o json
  agentctl auth can-i call write -f . --args @call.json
  agentctl auth can-i call task -f manifests/team --args '{"agent": "writer", "prompt": "x"}'
  agentctl auth can-i call write -f manifests/team --agent writer --below planner --args '{"path": "a.md", "content": "x"}'`,
		Args: callArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.runCanI(cmd.Context(), args[1]) },
	}
	files(cmd, &o.files)
	cmd.Flags().Lookup("file").Usage += " (default the current folder)"
	cmd.Flags().StringVar(&o.agent, "agent", "", "`name` of the agent, where the manifests hold several")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeDeclared(v1alpha1.KindAgent)) // fails only for a flag that is not there
	cmd.Flags().StringSliceVar(&o.below, "below", nil, "`names` of the agents that have started the agent, that of the run first")
	_ = cmd.RegisterFlagCompletionFunc("below", a.completeDeclared(v1alpha1.KindAgent))
	cmd.Flags().StringArrayVar(&o.policies, "policy", nil, "`name` of a Policy that narrows the run; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("policy", a.completeDeclared(v1alpha1.KindPolicy))
	noRepositoryPolicies(cmd, &o.noRepository)
	cmd.Flags().StringVar(&o.workspace, "workspace", "", "`folder` whose files the call would see (default that of the manifests, else the current folder)")
	cmd.Flags().StringVar(&o.args, "args", "{}", "arguments of the call: a JSON `object`, or @FILE")
	output(cmd, &o.output, "format: an answer, or one object")
	return cmd
}

func callArgs(_ *cobra.Command, args []string) error {
	switch {
	case len(args) > 0 && args[0] != "call":
		return usagef("%q is nothing an agent can do: write can-i call TOOL", args[0])
	case len(args) < 2:
		return usagef("the tool is missing: write can-i call TOOL")
	case len(args) > 2:
		return usagef("unexpected argument %q after the tool", args[2])
	}
	return nil
}

// maxCallArgs bounds the arguments that are read from a file.
const maxCallArgs = 1 << 20

func (o *canIOptions) runCanI(ctx context.Context, tool string) error {
	args, err := callArguments(o.args)
	if err != nil {
		return err
	}
	if len(o.files) == 0 {
		o.files = []string{"."}
	}
	if err := needFiles(o.files); err != nil {
		return err
	}
	a, err := decisions.CanI(ctx, decisions.AccessOptions{
		Paths: o.files, Stdin: o.app.In, Agent: o.agent, Above: o.below, Policies: o.policies, WithoutRepository: o.noRepository, Workspace: o.workspace, Tool: tool, Args: args,
	})
	if err != nil {
		return err
	}
	if o.output.value == display.FormatJSON {
		err = display.WriteObject(o.app.stdout(), a)
	} else {
		err = shownAccess(a).Write(o.app.stdout())
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if a.Decision != message.Allow {
		return exit(reason.ExitRefused)
	}
	return nil
}

func callArguments(value string) (json.RawMessage, error) {
	name, file := strings.CutPrefix(value, "@")
	if !file {
		return json.RawMessage(value), nil
	}
	f, err := os.Open(name) //nolint:gosec // the user names the file
	if err != nil {
		return nil, usagef("read the arguments: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCallArgs+1))
	if err != nil {
		return nil, usagef("read the arguments: %w", err)
	}
	if len(b) > maxCallArgs {
		return nil, usagef("the arguments in %s are longer than %d bytes", name, maxCallArgs)
	}
	return b, nil
}

func shownAccess(a *decisions.Access) display.Access {
	s := display.Access{Decision: a.Decision, Rule: named(a.Policy, a.Rule), Place: placeOf(a.File, a.Line), Reason: a.Reason, Warnings: a.Warnings}
	for _, r := range a.Reaches {
		s.Reaches = append(s.Reaches, reachedLine(r))
	}
	for _, c := range a.Change {
		s.Change = append(s.Change, c.Text)
	}
	return s
}

// reachedLine is an agent that a call can start, as one line.
func reachedLine(r decisions.Reached) string {
	text := fmt.Sprintf("%s: %s", r.Agent, cmp.Or(strings.Join(r.Tools, ", "), "no tools"))
	if len(r.Policies) > 0 {
		text += "; judged by " + strings.Join(r.Policies, ", ")
	}
	if len(r.Ceilings) > 0 {
		text += "; narrowed by " + strings.Join(r.Ceilings, ", ")
	}
	return text
}
