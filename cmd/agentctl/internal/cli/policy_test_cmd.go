package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/policy/policytest"
)

type policyTestOptions struct {
	app    *app
	files  []string
	output choice
	only   string
	mutate bool
	least  float64
}

func (a *app) policyTestCmd() *cobra.Command {
	o := &policyTestOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON, display.FormatJUnit)}
	cmd := &cobra.Command{
		Use:   "test -f FILE|FOLDER|-",
		Short: "Judge the cases of policies",
		Long: `Judge the cases of policies by the engine that judges runs. Nothing is run.

Cases are in spec.tests of a Policy, and next to it in files whose names end in
tests.yaml, as "policy: NAME" and "tests:". Each policy is judged alone, in an
empty workspace whose folder a case calls ${workspace}.

Coverage is reported with the result: each rule must be true once and false once,
each entry of permissions must win once. With --mutate every rule is dropped,
every action flipped, every when negated, every entry dropped; some case must
fail each time.

Exit code 0: all cases pass. 1: a case fails, or with --mutate too few mutants
are noticed. 2: the manifests hold a mistake, or no case.`,
		Example: `  agentctl policy test -f policies/baseline
  agentctl policy test -f policies/baseline --mutate
  agentctl policy test -f manifests --run 'shell' -o junit > report.xml`,
		Args: filesOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runPolicyTest(cmd.Context()) },
	}
	files(cmd, &o.files)
	a.stateFlag(cmd)
	output(cmd, &o.output, "format: what failed, one object, or XML for a CI server")
	cmd.Flags().StringVar(&o.only, "run", "", "judge only cases whose name matches the regular `expression`")
	cmd.Flags().BoolVar(&o.mutate, "mutate", false, "try which mistakes in the policies no case notices")
	cmd.Flags().Float64Var(&o.least, "min-score", 100, "`percent` of mutants that must be noticed")
	return cmd
}

func (o *policyTestOptions) runPolicyTest(ctx context.Context) error {
	if err := needFiles(o.files); err != nil {
		return err
	}
	if o.mutate && o.only != "" {
		return usagef("--mutate needs all cases: leave out --run")
	}
	if !(o.least >= 0 && o.least <= 100) {
		return usagef("--min-score is not between 0 and 100")
	}
	opts := runner.PolicyTestOptions{Paths: o.files, Stdin: o.app.In, Mutate: o.mutate, State: o.app.state}
	if o.only != "" {
		only, err := regexp.Compile(o.only)
		if err != nil {
			return usagef("--run: %w", err)
		}
		opts.Only = only
	}
	report, err := runner.TestPolicies(ctx, opts)
	if err != nil {
		return err
	}
	if err := o.write(report); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if report.Failed > 0 || !o.enough(report) {
		return exit(reason.ExitFailed)
	}
	return nil
}

// enough reports whether the cases of each policy notice what they should.
func (o *policyTestOptions) enough(report *policytest.Report) bool {
	for i := range report.Policies {
		if m := report.Policies[i].Mutation; m != nil && m.Score < o.least {
			return false
		}
	}
	return true
}

func (o *policyTestOptions) write(report *policytest.Report) error {
	shown := display.PolicyTests{Report: report, Mutate: o.mutate, Again: "agentctl policy test -f " + strings.Join(o.files, " -f ")}
	switch o.output.value {
	case display.FormatJSON:
		return shown.WriteJSON(o.app.stdout())
	case display.FormatJUnit:
		return shown.WriteJUnit(o.app.stdout())
	}
	return shown.WriteText(o.app.stdout())
}
