package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/decisions"
)

type policyReplayOptions struct {
	target
	files    []string
	policies []string
	output   choice
}

func (a *app) policyReplayCmd() *cobra.Command {
	o := &policyReplayOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "replay run/ID",
		Short: "Judge the recorded calls of a run by other policies",
		Long: `Judge the recorded calls of a run again, by other policies, and list those about
which the decision is another one. Nothing is executed, and no model is asked.

Each call is judged with what had happened before it in the run: the calls and
refusals so far, what was used of the budget, the time, the step. What other
decisions would have changed about the calls that follow is not guessed.

With -f the policies there judge: those that the agent names or whose selector
matches it. A policy that the agent names and that is not there counts as shipped,
else as the run has recorded it. What narrows the run (--policy of the run, the
repository, agents above) still counts. --policy names the policies that judge,
instead. Without both, those of the run judge: then nothing may flip.

A call is not judged where its circumstances are not in the journal: a link that
is gone, a script that was changed, arguments without a secret. The reason is shown.
Calls of subagents are those of their own runs: agentctl get runs.

Exit code 0: nothing flips. 1: something does. 2: an error.`,
		Example: `  agentctl policy replay @latest
  agentctl policy replay @latest -f stricter.yaml
  agentctl policy replay run/fixer-01k -f agents -o json
  agentctl policy replay @latest --policy read-only`,
		Args:              oneArg("the run (run/ID or @latest)"),
		ValidArgsFunction: a.completeAnyRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runPolicyReplay(cmd.Context(), args[0]) },
	}
	files(cmd, &o.files)
	cmd.Flags().StringArrayVar(&o.policies, "policy", nil, "`name` of a Policy that judges, of -f, shipped or of the run; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.NoFileCompletions) // fails only for a flag that is not there
	output(cmd, &o.output, "format: what flips, or one object")
	o.flags(cmd)
	return cmd
}

func (o *policyReplayOptions) runPolicyReplay(ctx context.Context, word string) error {
	if len(o.files) > 0 {
		if err := needFiles(o.files); err != nil {
			return err
		}
	}
	src, err := o.openWord(ctx, word)
	if err != nil {
		return err
	}
	defer src.close()
	id, err := src.local("policy replay")
	if err != nil {
		return err
	}
	done, err := decisions.Replay(ctx, decisions.ReplayOptions{
		State: src.state, Ref: id, Paths: o.files, Stdin: o.app.In, Policies: o.policies,
	})
	if err != nil {
		return err
	}
	if o.output.value == display.FormatJSON {
		err = display.WriteObject(o.app.stdout(), done)
	} else {
		err = shownReplay(done).WriteText(o.app.stdout())
	}
	if err != nil {
		return fmt.Errorf("write what flips: %w", err)
	}
	if len(done.Flips) > 0 {
		return exit(reason.ExitFailed)
	}
	return nil
}

func shownReplay(r *decisions.Replayed) display.PolicyReplay {
	s := display.PolicyReplay{Run: r.Run, Judged: r.Judged}
	for _, f := range r.Flips {
		s.Flips = append(s.Flips, display.FlippedCall{
			Ref: "run/" + r.Run + "/" + f.Call, Call: f.Tool + " " + string(f.Args), Step: f.Step, Was: shownRuling(&f.Was), Now: shownRuling(&f.Now),
		})
	}
	for _, c := range r.NotJudged {
		s.NotJudged = append(s.NotJudged, display.SkippedCall{Call: c.Call, Tool: c.Tool, Step: c.Step, Why: c.Why})
	}
	for _, j := range r.Policies {
		s.Judges = append(s.Judges, map[string]string{decisions.FromManifests: j.Policy, decisions.FromShipped: j.Policy + " (shipped)", decisions.FromRun: j.Policy + " (of the run)"}[j.From])
	}
	return s
}

func shownRuling(r *decisions.Ruling) display.Ruling {
	return display.Ruling{Decision: r.Decision, Rule: named(r.Policy, r.Rule), Place: placeOf(r.File, r.Line), Reason: r.Reason}
}
