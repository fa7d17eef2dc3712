package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/ci"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/audit"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

type runOptions struct {
	app    *app
	target target

	files            []string
	agent, model     string
	skill            string
	prompt           string
	attach           []string
	inputs           []string
	policies         []string
	noRepository     bool
	workspace        string
	inPlace          bool
	output           choice
	approve          string
	timeout          time.Duration
	allowUnsandboxed bool
	containerd       string
	failOnDenied     bool
	record           cassette
	receipt          string
	sign             signing
	ci               choice
	reports          []ci.File
	locked           bool
	lockFile         string

	// For an agent of a control plane.
	name   string
	detach bool

	// continues is the run that goes on with the prompt; "" begins one.
	continues string
	// command and arguments are those of the command line; "" is none.
	command   string
	arguments []string
	// said is a prompt that was read already, and is data; "" is none.
	said string
}

func (a *app) runCmd() *cobra.Command {
	o := &runOptions{app: a, target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON, display.FormatJSONL), ci: newChoice(string(ci.None), string(ci.Auto), string(ci.GitHub), string(ci.GitLab))}
	cmd := &cobra.Command{
		Use:   "run -f FILE|FOLDER|- [/COMMAND ARG...] | run --continue RUN -p TEXT | run agent/NAME",
		Short: "Run an agent until it has an answer",
		Long: `Run an agent until it has an answer or a limit is reached.

The manifests name the agent, its model, its tools and the policies that judge
each call. With one Agent, or one Run, nothing else need be named. The agent
works on a copy of the workspace: afterwards "agentctl diff" shows what it
changed and "agentctl apply-changes" applies it.

The answer goes to stdout, the progress of the run to stderr. With -o json stdout
holds one object at the end, with -o jsonl every event as it is in the
journal ("agentctl schema result" and "agentctl schema event" describe them).
The exit code reports how the run ended: see "agentctl help exit-codes".

Ctrl-C once stops the run and its tools, twice kills them. A run that was killed,
or waits for an approval, is continued by "agentctl resume".

With --skill the plan of a Skill is carried out step by step, with the tools, policies
and limits of the agent. Its model is not asked, and needs no key. With --agent and
without -f, skill and agent are those of a control plane.

"/NAME ARG..." is a command: the file commands/NAME.md in the folder of -f is the
prompt, with the arguments in its places $1, $2 or $ARGUMENTS.

--continue gives a run that has ended another turn: the same conversation, journal and
files, with the prompt of -p. The manifests are read again, those of the turn before or
those of -f, and what is declared otherwise is shown; --agent takes another agent of
theirs. Each turn has its own limits.

--report writes reports of the run to files: junit, sarif (of findings in the output),
summary (Markdown), json and codequality (of GitLab). --ci auto finds out which CI system
runs the job: no question is asked there, every model must have a version in its
name, and the log, the summary, the annotations and the outputs of the job are written.

"run agent/NAME" has a control plane run an agent that was applied there, and
shows the run in the same way; exit code and output are those of the run. Ctrl-C
once cancels it, twice leaves it; "agentctl attach" looks at it again. Calls that
need an approval are answered elsewhere: see "agentctl approve". With --detach the
run is named on stdout and not waited for.`,
		Example: `  agentctl run -f manifests/hello
  agentctl run -f agent.yaml -p "Review the last commit." --workspace ~/src/repo
  git diff | agentctl run -f reviewer.yaml -p - -o json
  agentctl run -f manifests/hello --record hello.cassette.jsonl
  agentctl run -f manifests/hello --receipt receipt.json --receipt-key receipt.key
  agentctl run -f reviewer.yaml --ci auto --report junit=run.xml,sarif=run.sarif
  agentctl run -f agents --locked --ci auto
  agentctl run -f manifests/ --agent fixer --input issue=42 --approve never
  agentctl run -f manifests/team --policy no-secrets
  agentctl run -f agents /review main..HEAD
  agentctl run --continue @latest -p "Now write the test, too."
  agentctl run --continue run/plan-01k --agent build -p "Do it."
  agentctl run -f manifests/release-checklist --skill release --input version=v1.2.0
  agentctl run agent/reviewer -p "Review the last commit." -n web
  agentctl run --skill release --agent releaser --input version=v1.2.0
  agentctl run agent/reviewer -p @task.txt --input issue=42 --detach`,
		GroupID:           groupRun,
		Args:              runArgs,
		ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && strings.HasPrefix(args[0], "/") {
				o.command, o.arguments, args = args[0][1:], args[1:], nil
			}
			name := o.there(args)
			if err := agentFlags(cmd, name != "", len(args) > 0); err != nil {
				return err
			}
			if name != "" {
				return o.runAgent(cmd.Context(), name, cmd.Flags().Changed("prompt"), cmd.Flags().Changed("timeout"))
			}
			return o.runRun(cmd.Context(), cmd.Flags().Changed("prompt"), cmd.Flags().Changed("timeout"))
		},
	}
	o.flags(cmd)
	return cmd
}

func (o *runOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	files(cmd, &o.files)
	f.StringVar(&o.agent, "agent", "", "`name` of the Agent to run, where there are several")
	f.StringVar(&o.continues, "continue", "", "`run` that has ended and goes on with the prompt of -p: run/ID or @latest")
	_ = cmd.RegisterFlagCompletionFunc("continue", o.app.completeEnded) // fails only for a flag that is not there
	f.StringVar(&o.skill, "skill", "", "`name` of a Skill whose plan is carried out, without asking the agent's model")
	f.StringVarP(&o.prompt, "prompt", "p", "", "first message to the model: a `text`, @FILE, or - for stdin")
	f.StringArrayVar(&o.attach, "attach", nil, "image or PDF `file` that goes to the model with the prompt; may be repeated")
	f.StringArrayVar(&o.inputs, "input", nil, "`key=value` the agent reads as ${inputs.key}; may be repeated")
	f.StringArrayVar(&o.policies, "policy", nil, "`name` of a Policy that narrows the run and every run its subagents begin; may be repeated")
	noRepositoryPolicies(cmd, &o.noRepository)
	f.StringVar(&o.model, "model", "", "`name` of the Model to use instead of the agent's")
	f.StringVar(&o.workspace, "workspace", "", "`folder` to work on (default the Run's, else the current folder); with agent/NAME: workspace/NAME")
	f.BoolVar(&o.inPlace, "in-place", false, "work on the folder itself instead of a copy")
	output(cmd, &o.output, "what stdout holds: the answer, one object, or every event")
	approve(cmd, &o.approve)
	f.DurationVar(&o.timeout, "timeout", 0, "end the run after this time, if its limits do not end it sooner")
	f.BoolVar(&o.allowUnsandboxed, "allow-unsandboxed", false, "run tools that ask for a sandbox without one")
	containerd(cmd, &o.containerd)
	f.BoolVar(&o.failOnDenied, "fail-on-denied", false, "exit with 3 if any call was refused, even if there is an answer")
	record(cmd, &o.record)
	job(cmd, &o.ci, &o.reports)
	f.BoolVar(&o.locked, "locked", false, "run only what is as agentctl.lock beside the manifests pins it (agentctl lock)")
	lockFile(cmd, &o.lockFile)
	f.StringVar(&o.receipt, "receipt", "", "`file` for a signed receipt of the run when it has ended, for \"agentctl audit verify\"")
	_ = cmd.MarkFlagFilename("receipt", "json") // fails only for a flag that is not there
	o.sign.flags(cmd, "receipt-")
	f.StringVar(&o.name, "name", "", "with agent/NAME: `name` of the Run (default the agent's with something behind it)")
	f.BoolVar(&o.detach, "detach", false, "with agent/NAME: name the Run and do not wait for it")
	o.target.flags(cmd)
	o.app.completeRunFlags(cmd)
}

// there is the agent of a control plane that is to run; "" for one of manifests. Without
// manifests, the agent whose tools a plan uses can only be there.
func (o *runOptions) there(args []string) string {
	if len(args) > 0 {
		name, _ := agentName(args[0])
		return name
	}
	if o.skill != "" && len(o.files) == 0 && o.continues == "" {
		return o.agent
	}
	return ""
}

func runArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		if name, ok := agentName(args[0]); ok {
			if name == "" || strings.Contains(name, "/") {
				return usagef("%q names no agent", args[0])
			}
			return oneArg("the agent")(cmd, args)
		}
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "/") {
		if cmd.Flags().Changed("file") || cmd.Flags().Changed("continue") {
			return nil // what it names is looked for there
		}
		if !isManifest(args[0]) {
			return usagef("%s is a command of manifests: name their folder with -f", args[0])
		}
	}
	if len(args) == 0 || isManifest(args[0]) {
		return filesOnly(cmd, args)
	}
	return usagef("unexpected argument %q: a prompt is given with -p, an agent of a control plane is named agent/NAME", args[0])
}

func (o *runOptions) runRun(ctx context.Context, hasPrompt, hasTimeout bool) error {
	ro, err := o.options(hasPrompt, hasTimeout)
	if err != nil {
		return err
	}
	receipt, err := o.receipts(ctx)
	if err != nil {
		return err
	}
	j, err := o.job(&ro)
	if err != nil {
		return err
	}
	var past *view.Run
	if o.continues != "" && o.output.value == display.FormatText { // events speak of what was said before; what is wrong with the run is for Run to say
		past, _ = runs.View(ctx, ro.State, ro.Continue)
	}
	leave := make(chan struct{})
	ro.Telemetry = o.app.openTelemetry()
	return o.app.show(ctx, showing{
		telemetry: ro.Telemetry, past: past,
		format: o.output.value, asks: ro.Terminal != nil, record: o.record.value, leave: leave, receipt: receipt, job: j,
		execute: func(ctx context.Context, see watcher, kill <-chan struct{}) (*runner.Outcome, error) {
			ro.Events, ro.Children, ro.Kill, ro.Leave = see.run, see.below, kill, leave
			ro.Stdin = interruptible{ctx, ro.Stdin}
			ro.Cloning = see.notice
			return runner.Run(ctx, ro)
		},
	})
}

// receipts returns what signs a receipt of the run; nil where none is wanted. The key and the
// folder of the file are looked at before anything runs.
func (o *runOptions) receipts(ctx context.Context) (func(context.Context, *runner.Outcome) error, error) {
	if o.receipt == "" {
		if o.sign.key != "" || o.sign.program != "" || len(o.sign.args) > 0 || o.sign.public != "" {
			return nil, usagef("a key without a receipt: name its file with --receipt")
		}
		return nil, nil //nolint:nilnil // none is wanted
	}
	signer, err := o.sign.open(ctx, "receipt-")
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(filepath.Dir(o.receipt)); err != nil || !info.IsDir() {
		return nil, usagef("--receipt %s: the folder is not there", o.receipt)
	}
	return func(ctx context.Context, out *runner.Outcome) error {
		text, err := audit.Sign(ctx, out.Journal, signer)
		if err != nil {
			return err
		}
		return writeReceipt(o.receipt, text)
	}, nil
}

// options turns the flags into what the front door takes.
func (o *runOptions) options(hasPrompt, hasTimeout bool) (runner.RunOptions, error) {
	none := runner.RunOptions{}
	if err := o.goesOn(hasPrompt); err != nil {
		return none, err
	}
	if len(o.files) == 0 && o.continues == "" {
		return none, usagef("say which manifests with -f FILE, -f FOLDER or -f -, or name an agent of a control plane: agent/NAME")
	}
	if len(o.files) > 0 {
		if err := needFiles(o.files); err != nil {
			return none, err
		}
	}
	if hasTimeout && o.timeout <= 0 {
		return none, usagef("--timeout must be longer than 0")
	}
	in, err := inputs(o.inputs)
	if err != nil {
		return none, err
	}
	manifests, stdin, typed := o.app.In, slices.Contains(o.files, "-"), false
	if o.said != "" {
		o.prompt = o.said
	} else if hasPrompt {
		if o.prompt == "-" && stdin {
			return none, usagef("-f - and -p - cannot both read stdin")
		}
		stdin, typed = stdin || o.prompt == "-", o.prompt != "-" && !strings.HasPrefix(o.prompt, "@")
		if o.prompt, err = prompt(o.prompt, o.app.In); err != nil {
			return none, err
		}
	}
	dir, err := statedir.Find(o.app.state)
	if err != nil {
		return none, err
	}
	ro := runner.RunOptions{
		Continue: o.continues, Verbatim: o.said != "", Paths: o.files, Stdin: manifests, Agent: o.agent, Model: o.model, Skill: o.skill, Prompt: o.prompt, Authored: typed, Command: o.command, Arguments: o.arguments, Attach: o.attach, Inputs: in, Policies: o.policies, WithoutRepository: o.noRepository,
		Workspace: o.workspace, InPlace: o.inPlace, State: dir, Approve: o.approve, Timeout: o.timeout,
		AllowUnsandboxed: o.allowUnsandboxed, Containerd: o.containerd, FailOnDenied: o.failOnDenied, Record: o.record.value, Version: readVersion().Version,
	}
	if o.locked {
		if ro.Locked = o.lockFile; ro.Locked == "" {
			if len(o.files) == 0 {
				return none, usagef("--locked with --continue: name the lock with --lock-file, or the manifests with -f")
			}
			ro.Locked = runner.LockFile(o.files[0])
		}
	} else if o.lockFile != "" {
		return none, usagef("--lock-file without --locked compares nothing")
	}
	if !stdin {
		ro.Terminal = o.app.terminal()
	}
	return ro, nil
}

// goesOn checks the flags of a run that goes on.
func (o *runOptions) goesOn(hasPrompt bool) error {
	if o.continues == "" {
		return nil
	}
	for _, f := range []struct {
		name  string
		given bool
	}{{"workspace", o.workspace != ""}, {"in-place", o.inPlace}, {"skill", o.skill != ""}} {
		if f.given {
			return usagef("--%s: a run that goes on keeps its files and its kind", f.name)
		}
	}
	if !hasPrompt && o.command == "" {
		return usagef("--continue %s: say with what it goes on: -p TEXT", o.continues)
	}
	r, err := parseRun(o.continues)
	if err != nil {
		return err
	}
	if o.continues = r.name; ofObject(r.name) {
		return usagef("run %s is one of a control plane, which takes no other turn", r.name)
	}
	return nil
}

// terminal is where a person can be asked; nil without one.
func (a *app) terminal() *runner.Terminal {
	if isTerminal(a.In) && isTerminal(a.Err) {
		return &runner.Terminal{In: a.In, Out: a.Err}
	}
	return nil
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
