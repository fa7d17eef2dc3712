package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/statedir"
)

type replayOptions struct {
	app *app

	files            []string
	agent            string
	output           choice
	update           bool
	workspace        string
	approve          string
	allowUnsandboxed bool
	containerd       string
}

// updateFlags are those that only a run for real has a use for.
var updateFlags = []string{"workspace", "approve", "allow-unsandboxed", "containerd-address", "state"}

func (a *app) replayCmd() *cobra.Command {
	o := &replayOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON, display.FormatJSONL)}
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Execute a recorded run again, without a model and without tools",
		Long: `Execute a recorded run again and report the first difference.

The file is a cassette that "agentctl run --record FILE" has written. The loop of
this version executes the run again: it checks calls, loops and limits, shortens
the conversation and checks the answer. The model, the policy's decisions, the approvals and the
results of the tools are played from the recording: no key, network, program,
workspace or state folder is needed, and none is used. Output and exit code are
those of the recorded run.

With -f the agent, the tools and the limits are those of the manifests as they
are today: so a change of the instructions, of a tool's schema or of a limit is
found. The recorded decisions stay.

The first difference ends the replay with exit code 7, as does a cassette in
which any byte was changed; the message names the line.

--update runs the recorded run for real, of the recorded manifests or those of
-f, replaces the file when the run has ended, and shows what differs. It
starts the programs that they name.`,
		Example: `  agentctl run -f manifests/hello --record hello.cassette.jsonl
  agentctl replay hello.cassette.jsonl
  agentctl replay hello.cassette.jsonl -f manifests/hello -o json
  agentctl replay hello.cassette.jsonl --update --approve never`,
		GroupID:           groupRun,
		Args:              oneArg("the cassette"),
		ValidArgsFunction: completeCassettes,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.update {
				return o.runUpdate(cmd.Context(), args[0])
			}
			for _, name := range updateFlags {
				if cmd.Flags().Changed(name) {
					return usagef("--%s is for a run for real: add --update", name)
				}
			}
			if o.agent != "" && len(o.files) == 0 {
				return usagef("--agent names one of the agents in -f: add -f FILE")
			}
			return o.runReplay(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	files(cmd, &o.files)
	f.StringVar(&o.agent, "agent", "", "`name` of the Agent in -f, where there are several and none has the recorded name")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeDeclared(v1alpha1.KindAgent)) // these fail only for a flag that is not there
	output(cmd, &o.output, "what stdout holds: the answer, one object, or every event")
	f.BoolVar(&o.update, "update", false, "run it for real, record it again and show what differs")
	f.StringVar(&o.workspace, "workspace", "", "`folder` to work on (default the recorded one)")
	_ = cmd.MarkFlagDirname("workspace")
	approve(cmd, &o.approve)
	f.BoolVar(&o.allowUnsandboxed, "allow-unsandboxed", false, "run tools that ask for a sandbox without one")
	containerd(cmd, &o.containerd)
	a.stateFlag(cmd)
	for _, name := range updateFlags {
		f.Lookup(name).Usage = "with --update: " + f.Lookup(name).Usage
	}
	return cmd
}

// completeCassettes leaves the one argument to the shell: it is a file.
func completeCassettes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"jsonl"}, cobra.ShellCompDirectiveFilterFileExt
}

func (o *replayOptions) runReplay(ctx context.Context, file string) error {
	if len(o.files) > 0 {
		if err := needFiles(o.files); err != nil {
			return err
		}
	}
	a := o.app
	shown := display.NewReplay(o.output.value, a.stdout(), a.stderr(), file)
	r, err := runner.Replay(ctx, runner.ReplayOptions{
		File: file, Paths: o.files, Stdin: a.In, Agent: o.agent, Events: shown.Event,
	})
	if err != nil {
		return err
	}
	for _, note := range r.Notes {
		shown.Notice("note: " + note)
	}
	code := r.ExitCode()
	if err := shown.Finish(r.Run, r.Divergence); display.BrokenPipe(err) {
		if code == reason.ExitOK {
			code = exitPipe
		}
	} else if err != nil {
		display.Error(a.stderr(), fmt.Errorf("write the output: %w", err), display.Advice{})
		if code == reason.ExitOK {
			code = reason.ExitFailed
		}
	}
	return exit(code)
}

func (o *replayOptions) runUpdate(ctx context.Context, file string) error {
	if o.output.value == display.FormatJSONL {
		return usagef("--update shows a difference: use -o text or json")
	}
	a := o.app
	if len(o.files) > 0 {
		if err := needFiles(o.files); err != nil {
			return err
		}
	}
	state, err := statedir.Find(a.state)
	if err != nil {
		return err
	}
	run := runner.RunOptions{
		Paths: o.files, Stdin: a.In, Agent: o.agent, Workspace: o.workspace, State: state, Approve: o.approve,
		AllowUnsandboxed: o.allowUnsandboxed, Containerd: o.containerd, Version: readVersion().Version, Terminal: a.terminal(),
	}
	var updated *runner.Updated
	err = a.show(ctx, showing{
		// stdout holds the difference alone, which is shown below.
		format: display.FormatText, asks: run.Terminal != nil, mute: true,
		execute: func(ctx context.Context, see watcher, kill <-chan struct{}) (*runner.Outcome, error) {
			run.Events, run.Kill = see.run, kill
			run.Stdin = interruptible{ctx, a.In}
			var err error
			if updated, err = runner.Update(ctx, runner.UpdateOptions{File: file, Run: run}); err != nil {
				return nil, err
			}
			return updated.Outcome, nil
		},
	})
	if updated == nil {
		return err
	}
	if shown := display.WriteUpdate(o.output.value, a.stdout(), &updated.Change); shown != nil {
		return errors.Join(err, fmt.Errorf("write the difference: %w", shown))
	}
	return err
}
