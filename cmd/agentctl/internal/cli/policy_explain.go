package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/decisions"
)

type policyExplainOptions struct {
	target
	output choice
}

func (a *app) policyExplainCmd() *cobra.Command {
	o := &policyExplainOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "explain RUN/CALL",
		Short: "Show why a call of a run was allowed, asked about or denied",
		Long: `Show why a call of a run was allowed, asked about or denied.

The call is judged again, from the journal of the run alone. Every rule that was
evaluated is shown: its file and line, the value of its condition, and the values
of the condition's parts.

RUN is named as by every verb (agentctl help names). CALL is the call's id, the
beginning of one, or its number in the run; without it, it is the last call that
was not allowed.`,
		Example: `  agentctl policy explain @latest
  agentctl policy explain @latest/3
  agentctl policy explain run/hello/call_1 -o json`,
		Args:              oneArg("the call (RUN/CALL)"),
		ValidArgsFunction: a.completeAnyRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runPolicyExplain(cmd.Context(), args[0]) },
	}
	output(cmd, &o.output, "format: a report, or one object")
	o.flags(cmd)
	return cmd
}

func (o *policyExplainOptions) runPolicyExplain(ctx context.Context, ref string) error {
	r, err := parseCall(ref)
	if err != nil {
		return err
	}
	src, err := o.openRun(ctx, r)
	if err != nil {
		return err
	}
	defer src.close()
	id, err := src.local("policy explain")
	if err != nil {
		return err
	}
	x, err := decisions.Explain(ctx, src.state, id, cmp.Or(r.call, src.call))
	if err != nil {
		return err
	}
	if o.output.value == display.FormatJSON {
		err = display.WriteObject(o.app.stdout(), x)
	} else {
		err = shownExplanation(x).Write(o.app.stdout())
	}
	if err != nil {
		return fmt.Errorf("write the explanation: %w", err)
	}
	return nil
}

func shownExplanation(x *decisions.Explanation) display.Explanation {
	s := display.Explanation{
		Call: x.Tool + " " + string(x.Args), Ref: "run/" + x.Run + "/" + x.Call, Decision: x.Decision,
		Rule: named(x.Policy, x.Rule), Place: placeOf(x.File, x.Line), Reason: x.Reason, Again: x.Again,
	}
	for _, c := range x.Candidates {
		k := display.Candidate{
			Rule: named(c.Policy, c.Rule), Place: placeOf(c.File, c.Line), Action: string(c.Action), Mode: c.Mode,
			When: c.When, Truth: c.Truth, Error: c.Error, Decisive: c.Decisive,
		}
		for _, v := range c.Values {
			k.Values = append(k.Values, [2]string{v.Expression, v.Value})
		}
		s.Candidates = append(s.Candidates, k)
	}
	return s
}

func named(policy, rule string) string {
	if policy == "" {
		return rule
	}
	return policy + "/" + rule
}

func placeOf(file string, line int) string {
	if file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", file, line)
}
