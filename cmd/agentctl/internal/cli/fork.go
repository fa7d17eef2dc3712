package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
)

type forkOptions struct {
	target
	output           choice
	files            []string
	at, agent, model string
	prompt           string
	policies         []string
	workspace        string
	trustManifests   bool
	outsideKept      bool
	approve          string
	timeout          time.Duration
	allowUnsandboxed bool
	containerd       string
	failOnDenied     bool
}

func (a *app) forkCmd() *cobra.Command {
	o := &forkOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON, display.FormatJSONL)}
	cmd := &cobra.Command{
		Use:   "fork run/ID|FILE",
		Short: "Begin a run from a place in another one, with its files as they were",
		Long: `Begin a new run from a place in another one: with everything that was said and done
before it, taken from the journal, and with the files as they were then. Nothing of
that is executed again, nobody is asked again, and the other run stays as it is.

--at names what the new run begins before: a call, which is judged again, by the
policies of -f if there are any; a message, such as an answer of the model; turn/N
or step/N. Without it the new run begins at the end.

With -f, --agent, --model or --policy the manifests are read again, those of -f or
those of the run, and what they declare holds from there on. -p is the next message
to the model.

What the run did outside before that place stays done: requests, messages, a change
that was applied. It is listed, and the fork needs --outside-kept. What was approved
for always is asked about again. A run that worked in place is forked into a copy.

FILE is one that "agentctl export" has written, also on another machine: the new run has
the files that are in it, and its change is for the folder of --workspace. The manifests
are those of -f: an export may come from anybody, and its own manifests may start any
program. --trust-manifests takes them.`,
		Example: `  agentctl fork @latest --at call_3_1
  agentctl fork run/fixer-01k --at step/7 --model large
  agentctl fork @latest --at call_3_1 -f agents -f stricter.yaml
  agentctl fork @latest --at turn/2 -p "Do it another way."
  agentctl fork failure.tar.gz --at call_3_1 -f agents`,
		GroupID:           groupRun,
		Args:              oneArg("the run (run/ID or @latest)"),
		ValidArgsFunction: a.completeRunOrFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.runFork(cmd.Context(), args[0], cmd.Flags().Changed("prompt"), cmd.Flags().Changed("timeout"))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.at, "at", "", "what it begins before: a `call`, a message, turn/N or step/N")
	_ = cmd.RegisterFlagCompletionFunc("at", a.completePlaces(true)) // fails only for a flag that is not there
	files(cmd, &o.files)
	f.StringVar(&o.agent, "agent", "", "`name` of the Agent that goes on")
	f.StringVar(&o.model, "model", "", "`name` of the Model that goes on")
	f.StringArrayVar(&o.policies, "policy", nil, "`name` of a Policy that narrows what follows; may be repeated")
	f.StringVarP(&o.prompt, "prompt", "p", "", "next message to the model: a `text`, @FILE, or - for stdin")
	f.StringVar(&o.workspace, "workspace", "", "of an export: the `folder` that the change is for (default the current one)")
	_ = cmd.MarkFlagDirname("workspace") // fails only for a flag that is not there
	f.BoolVar(&o.trustManifests, "trust-manifests", false, "of an export: go on by the manifests in it, which may start any program")
	f.BoolVar(&o.outsideKept, "outside-kept", false, "accept that what the run did outside before stays done")
	output(cmd, &o.output, "what stdout holds: the answer, one object, or every new event")
	approve(cmd, &o.approve)
	f.DurationVar(&o.timeout, "timeout", 0, "end the run after this time, if its limits do not end it sooner")
	_ = cmd.RegisterFlagCompletionFunc("timeout", cobra.NoFileCompletions) // fails only for a flag that is not there
	f.BoolVar(&o.allowUnsandboxed, "allow-unsandboxed", false, "run tools that ask for a sandbox without one")
	containerd(cmd, &o.containerd)
	f.BoolVar(&o.failOnDenied, "fail-on-denied", false, "exit with 3 if any call was refused, even if there is an answer")
	o.target.flags(cmd)
	return cmd
}

func (o *forkOptions) runFork(ctx context.Context, word string, hasPrompt, hasTimeout bool) error {
	if hasTimeout && o.timeout <= 0 {
		return usagef("--timeout must be longer than 0")
	}
	src, err := o.openWord(ctx, word)
	if err != nil {
		return err
	}
	defer src.close()
	id, err := src.local("fork")
	if err != nil {
		return err
	}
	if len(o.files) > 0 {
		if err := needFiles(o.files); err != nil {
			return err
		}
	}
	if hasPrompt {
		if o.prompt, err = prompt(o.prompt, o.app.In); err != nil {
			return err
		}
	}
	state := src.state
	if src.export != nil { // the new run is not in the export
		if state, err = statedir.Find(o.app.state); err != nil {
			return err
		}
	}
	fo := runner.ForkOptions{Ref: id, Export: src.export, TrustManifests: o.trustManifests, At: o.at, OutsideKept: o.outsideKept, RunOptions: runner.RunOptions{
		Paths: o.files, Stdin: o.app.In, Agent: o.agent, Model: o.model, Policies: o.policies, Workspace: o.workspace, Prompt: o.prompt, State: state, Approve: o.approve, Timeout: o.timeout,
		AllowUnsandboxed: o.allowUnsandboxed, Containerd: o.containerd, FailOnDenied: o.failOnDenied, Version: readVersion().Version,
		Terminal: o.app.terminal(), Telemetry: o.app.openTelemetry(),
	}}
	leave := make(chan struct{})
	return o.app.show(ctx, showing{
		telemetry: fo.Telemetry, format: o.output.value, asks: fo.Terminal != nil, leave: leave,
		execute: func(ctx context.Context, see watcher, kill <-chan struct{}) (*runner.Outcome, error) {
			fo.Events, fo.Children, fo.Kill, fo.Leave = see.run, see.below, kill, leave
			fo.Begun = func(id, text string) { begun(ctx, state, id, text, see.setPast, see.notice) }
			return runner.Fork(ctx, fo)
		},
	})
}

// begun shows that a fork is there, and tells what it has behind it.
func begun(ctx context.Context, state, id, text string, setPast func(*view.Run), notice func(string)) {
	if past, err := runs.View(ctx, state, id); err == nil { // else its events say what is wrong
		setPast(past)
	}
	notice(text)
}
