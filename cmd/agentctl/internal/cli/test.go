package cli

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/agenttest"
	"agentctl.dev/agentctl/runner/agenttest/report"
	"agentctl.dev/agentctl/runner/statedir"
)

type testOptions struct {
	app    *app
	files  []string
	output choice

	only             string
	parallel         int
	failFast, update bool
	models, policies []string

	coverage bool
	least    float64

	baseline, store string
	tolerance       float64

	locked   bool
	lockFile string

	keep             string
	allowUnsandboxed bool
	containerd       string
}

func (a *app) testCmd() *cobra.Command {
	o := &testOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON, display.FormatJUnit)}
	cmd := &cobra.Command{
		Use:   "test -f FILE|FOLDER|- [TEST[/CASE]...]",
		Short: "Carry out the tests of agents",
		Long: `Carry out the Tests of manifests: run each case with a scripted or recorded model
on files of its own, and judge what it expects. No key and no network is needed;
the tools are real, and contained as their manifests say. Each case has a state
folder and a copy of its files, which are removed at the end.

A test with spec.record is replayed from its cassette with the manifests as they
are today, and the first difference fails it, with its place. --update runs these
tests for real, with the agent's model, records them again, and shows what differs.

--coverage reports which rules of which policies were true and false, and which
tools and agents were called. --models and --policy run all cases with each of the
Models, which may be real ones, and narrowed by each of the policies ("none" is
none), and compare them in a table. --baseline compares with an earlier report: a
case that passed and fails, and more steps or cost than --tolerance allows, is a
regression. --locked compares what the agents use with the lock of the manifests
first, and what programs describe when a case starts them; see agentctl lock.

Exit code 0: all cases passed. 1: a case failed, coverage is too low; with
--baseline only a regression counts. 2: the manifests hold a mistake, or no Test;
with --locked something is not as the lock pins it, or the lock is damaged.
4: with --update or --models a key is missing or was refused. 130, 143: stopped by
a signal.`,
		Example: `  agentctl test -f manifests/hello
  agentctl test -f agents greets 'refuses/a push' -o junit > tests.xml
  agentctl test -f agents --coverage --min-coverage 80
  agentctl test -f agents --locked
  agentctl test -f agents --update                      # with a key
  agentctl test -f agents --models fast,big --write-baseline eval.json
  agentctl test -f agents --models fast --baseline eval.json --tolerance 10`,
		GroupID:           groupManifest,
		Args:              testNames,
		ValidArgsFunction: o.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runTest(cmd, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	files(cmd, &o.files)
	f.StringVar(&o.only, "run", "", "only cases whose name, TEST or TEST/CASE, matches the regular `expression`")
	f.IntVarP(&o.parallel, "parallel", "j", 0, "`number` of cases at the same time (default one for each processor)")
	f.BoolVar(&o.failFast, "fail-fast", false, "run no further case once one has failed")
	output(cmd, &o.output, "format: what failed and a line for each test, one object, or XML for a CI server")
	f.BoolVar(&o.update, "update", false, "ask the models, run the tools, record the cassettes again and show what differs")
	f.BoolVar(&o.coverage, "coverage", false, "report which rules, tools and agents the tests have exercised")
	f.Float64Var(&o.least, "min-coverage", 0, "`percent` that must be exercised; implies --coverage")
	f.StringSliceVar(&o.models, "models", nil, "run all cases with each of these Models: `names` with commas between")
	f.StringSliceVar(&o.policies, "policy", nil, "run all cases narrowed by each of these policies: `names` with commas between; none is no policy")
	f.StringVar(&o.baseline, "baseline", "", "`file` with an earlier report to compare with")
	f.StringVar(&o.store, "write-baseline", "", "`file` that the report is written to, as of -o json")
	f.Float64Var(&o.tolerance, "tolerance", 0, "`percent` by which steps and cost may exceed those of the baseline")
	f.BoolVar(&o.locked, "locked", false, "refuse what is not as agentctl.lock pins it")
	lockFile(cmd, &o.lockFile)
	f.StringVar(&o.keep, "keep", "", "`folder` that keeps the state folders of failed cases, for agentctl logs --state")
	f.BoolVar(&o.allowUnsandboxed, "allow-unsandboxed", false, "run tools that ask for a sandbox without one")
	containerd(cmd, &o.containerd)
	a.stateFlag(cmd)
	f.Lookup("state").Usage = "`folder` with stored keys, for --update and --models (default $AGENTCTL_STATE, else the XDG state folder)"
	for _, name := range []string{"run", "parallel", "min-coverage", "tolerance"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions) // these fail only for a flag that is not there
	}
	_ = cmd.RegisterFlagCompletionFunc("models", a.completeDeclared(v1alpha1.KindModel))
	_ = cmd.RegisterFlagCompletionFunc("policy", a.completeDeclared(v1alpha1.KindPolicy))
	_ = cmd.MarkFlagFilename("baseline", "json")
	_ = cmd.MarkFlagFilename("write-baseline", "json")
	_ = cmd.MarkFlagDirname("keep")
	return cmd
}

// testNames refuses a manifest among the names of tests.
func testNames(cmd *cobra.Command, args []string) error {
	for _, name := range args {
		if name == "" {
			return usagef("the name of a test is empty")
		}
		if paths := cmd.Flag("file").Value.String(); paths == "" && isManifest(name) {
			return usagef("unexpected argument %q: manifests are named with -f %s", name, name)
		}
	}
	return nil
}

// complete offers the tests of the manifests.
func (o *testOptions) complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(o.files) == 0 { // tests of a control plane are not carried out
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, directive := o.app.completeDeclared(v1alpha1.KindTest)(cmd, args, typed)
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(args, n) }), directive
}

// check refuses flags that do not go together.
func (o *testOptions) check(cmd *cobra.Command) error {
	if err := needFiles(o.files); err != nil {
		return err
	}
	switch compares := len(o.models)+len(o.policies) > 0; {
	case o.update && compares:
		return usagef("--update records each test with one model: leave --models and --policy out")
	case o.update && o.baseline != "":
		return usagef("--update records the tests again: compare them with --baseline afterwards")
	case !(o.least >= 0 && o.least <= 100):
		return usagef("--min-coverage is not between 0 and 100")
	case !(o.tolerance >= 0):
		return usagef("--tolerance is less than 0")
	case cmd.Flags().Changed("tolerance") && o.baseline == "":
		return usagef("--tolerance is about a comparison: add --baseline FILE")
	case cmd.Flags().Changed("parallel") && o.parallel < 1:
		return usagef("--parallel is less than 1")
	case o.lockFile != "" && !o.locked:
		return usagef("--lock-file without --locked compares nothing")
	case slices.Contains(o.models, ""), slices.Contains(o.policies, ""):
		return usagef("--models and --policy: a name between commas is empty")
	}
	return nil
}

func (o *testOptions) runTest(cmd *cobra.Command, names []string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	state, err := statedir.Find(o.app.state)
	if err != nil {
		return err
	}
	progress := display.NewTestProgress(o.app.stderr(), time.Now)
	opts := agenttest.Options{
		Names: names, Parallel: o.parallel, FailFast: o.failFast, Update: o.update, Models: o.models, Policies: o.policies,
		Coverage: o.coverage || cmd.Flags().Changed("min-coverage"), Keep: o.keep, Progress: func(p agenttest.Progress) { progress.Show(p.Done, p.Total, p.Failed) },
	}
	if o.only != "" {
		if opts.Only, err = regexp.Compile(o.only); err != nil {
			return usagef("--run: %w", err)
		}
	}
	var before *report.Report
	if o.baseline != "" {
		if before, err = report.Read(o.baseline); err != nil {
			return err
		}
	}
	found, err := o.carryOut(cmd.Context(), state, opts)
	if err != nil {
		return err
	}
	if before != nil {
		found.Compare(before, o.baseline, o.tolerance)
	}
	if o.store != "" {
		if err := found.Write(o.store); err != nil {
			return err
		}
	}
	if err := o.write(found); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return exit(o.code(found))
}

// lock is the file of the lock.
func (o *testOptions) lock() string { return cmp.Or(o.lockFile, runner.LockFile(o.files[0])) }

// carryOut carries out the tests; a signal ends them.
func (o *testOptions) carryOut(parent context.Context, state string, opts agenttest.Options) (*report.Report, error) {
	ctx, signals := watch(parent, stopNotice(o.app.stderr()))
	defer signals.stop()
	found, err := o.test(ctx, state, opts, signals.kill)
	signals.stop()
	if err != nil {
		return nil, letGo(ctx, err)
	}
	return found, nil
}

// test reads the manifests and carries out their tests.
func (o *testOptions) test(ctx context.Context, state string, opts agenttest.Options, kill <-chan struct{}) (*report.Report, error) {
	manifests, err := runner.ReadManifests(ctx, runner.ManifestOptions{
		Paths: o.files, Stdin: interruptible{ctx, o.app.In}, Policies: agenttest.WithoutNone(o.policies), State: state,
	})
	if err != nil {
		return nil, err
	}
	ro := runner.RunOptions{
		Manifests: manifests, Keys: state, Version: readVersion().Version, Kill: kill, AllowUnsandboxed: o.allowUnsandboxed, Containerd: o.containerd,
	}
	if o.locked {
		ro.Locked = o.lock()
	}
	if opts.Engine, err = runner.Tests(ro); err != nil {
		return nil, err
	}
	return agenttest.Run(ctx, opts)
}

// code is the exit code.
func (o *testOptions) code(r *report.Report) int {
	if o.update || len(o.models) > 0 {
		for i := range r.Results {
			c := &r.Results[i]
			if why := reason.Reason(c.Reason); !c.Pass && (why == reason.CredentialMissing || why == reason.CredentialRejected) {
				return reason.ExitCredential
			}
		}
	}
	if o.locked {
		if i := slices.IndexFunc(r.Results, func(c report.Case) bool { return c.Reason == string(reason.LockDrift) }); i >= 0 { // whatever the case expects
			display.Notice(o.app.stderr(), r.Results[i].Test+": what a program describes is not as "+o.lock()+" pins it")
			return reason.ExitUsage
		}
	}
	if r.Coverage != nil && r.Coverage.Percent < o.least {
		return reason.ExitFailed
	}
	if r.Comparison != nil {
		if len(r.Comparison.Regressions) > 0 {
			return reason.ExitFailed
		}
		return reason.ExitOK
	}
	if r.Failed+r.NotRun > 0 {
		return reason.ExitFailed
	}
	return reason.ExitOK
}

func (o *testOptions) write(r *report.Report) error {
	again := "agentctl test -f " + strings.Join(o.files, " -f ")
	shown := display.AgentTests{Report: r, Again: again, Least: o.least}
	switch o.output.value {
	case display.FormatJSON:
		return shown.WriteJSON(o.app.stdout())
	case display.FormatJUnit:
		return shown.WriteJUnit(o.app.stdout())
	}
	return shown.WriteText(o.app.stdout())
}
