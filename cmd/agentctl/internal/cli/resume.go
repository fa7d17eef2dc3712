package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/client"
	"agentctl.dev/agentctl/runner/runs"
)

type resumeOptions struct {
	target
	output  choice
	approve string
	timeout time.Duration
	// containerd is its socket; a run does not remember that of the machine it
	// was interrupted on.
	containerd string
	record     cassette
}

func (a *app) resumeCmd() *cobra.Command {
	o := &resumeOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON, display.FormatJSONL)}
	cmd := &cobra.Command{
		Use:   "resume run/ID",
		Short: "Continue a run that was killed or waits for an approval",
		Long: `Continue a run that was killed, or that waits for an approval.

It needs the journal only: the manifests may have changed or be gone. Calls with a
result are not repeated. An interrupted call runs again if its tool allows it
(spec.retry). Whether any other interrupted call has had its effect is unknown: a
person is asked whether to run it again, else the model gets an error. An answer
of "agentctl approve" or "agentctl deny" is taken; other open questions are asked
again. Credentials are read again.

The run is named as "agentctl help names" says. A run of a control plane that is
suspended by spec.suspend continues there and is watched, as by "agentctl attach";
the flags about approvals, time and recording do not apply to it. With -o json
stdout holds one object about the whole run, with -o jsonl the events from now
on. A run that has ended prints its result again and starts nothing.`,
		Example: `  agentctl resume @latest
  agentctl resume run/hello-01k --approve prompt
  agentctl resume hello-01k -o json --timeout 5m`,
		GroupID:           groupRun,
		Args:              oneArg("the run (run/ID or @latest)"),
		ValidArgsFunction: a.completeResumable,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.runResume(cmd.Context(), args[0], cmd.Flags())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.target.flags(cmd)
	output(cmd, &o.output, "what stdout holds: the answer, one object, or every new event")
	approve(cmd, &o.approve)
	containerd(cmd, &o.containerd)
	record(cmd, &o.record)
	f.DurationVar(&o.timeout, "timeout", 0, "end the run after this time, if its limits do not end it sooner")
	_ = cmd.RegisterFlagCompletionFunc("timeout", cobra.NoFileCompletions) // fails only for a flag that is not there
	return cmd
}

func (o *resumeOptions) runResume(ctx context.Context, word string, set *pflag.FlagSet) error {
	if set.Changed("timeout") && o.timeout <= 0 {
		return usagef("--timeout must be longer than 0")
	}
	src, err := o.locateWord(ctx, word)
	if err != nil {
		if u, ok := errors.AsType[*reason.UsageError](err); ok {
			return (&reason.UsageError{Err: fmt.Errorf("nothing to resume: %w", u.Err)}).WithHint(u.Hint)
		}
		return err
	}
	if src.client == nil {
		if owner := o.owner(ctx, src.id); owner != nil {
			src = owner
		}
	}
	if src.client != nil {
		return o.resumeObject(ctx, src, set)
	}
	state, ref := src.state, src.id
	ro := runner.ResumeOptions{
		Ref: ref, State: state, Approve: o.approve, Timeout: o.timeout, Containerd: o.containerd, Record: o.record.value,
		Version: readVersion().Version, Terminal: o.app.terminal(), Telemetry: o.app.openTelemetry(),
	}
	leave := make(chan struct{})
	s := showing{
		telemetry: ro.Telemetry,
		format:    o.output.value, asks: ro.Terminal != nil, record: o.record.value, leave: leave,
		execute: func(ctx context.Context, see watcher, kill <-chan struct{}) (*runner.Outcome, error) {
			ro.Events, ro.Children, ro.Kill, ro.Leave = see.run, see.below, kill, leave
			return runner.Resume(ctx, ro)
		},
	}
	// New events speak of calls that a person has to be told about. What is wrong
	// with the run is for Resume to say.
	if s.format == display.FormatText {
		if past, err := runs.View(ctx, state, ref); err == nil {
			s.past = past
		}
	}
	return o.app.show(ctx, s)
}

// resumeObject continues a run that was suspended at a control plane, and
// watches it.
func (o *resumeOptions) resumeObject(ctx context.Context, src *source, set *pflag.FlagSet) error {
	for _, name := range []string{"approve", "timeout", "containerd-address", "record"} {
		if set.Changed(name) {
			src.close()
			return usagef("--%s is not for a run of a control plane, which executes %s", name, src.run)
		}
	}
	return o.app.follow(ctx, following{
		format: o.output.value, from: 1,
		find: func(ctx context.Context) (*source, error) {
			if suspended, _ := src.seen.Field("spec", "suspend").(bool); suspended {
				patch := map[string]any{"spec": map[string]any{"suspend": false}}
				if _, err := src.client.Merge(ctx, src.run, patch, client.WriteOptions{}); err != nil {
					src.close()
					return nil, err
				}
			}
			return src, nil
		},
	})
}
