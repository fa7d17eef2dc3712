package cli

import (
	"context"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner/runs"
)

type applyChangesOptions struct {
	target
	publishOptions
	output choice
}

func (a *app) applyChangesCmd() *cobra.Command {
	o := &applyChangesOptions{target: target{app: a}, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "apply-changes run/ID",
		Short: "Apply what a run changed to the folder it worked for",
		Long: `Apply exactly what a run changed to the folder its files came from.

It is all or nothing: if one of the files has changed since the run began,
nothing is applied, the files are listed and the exit code is 1. Applied once
more it does nothing, and the exit code is 0.

One that was killed is undone by the next one before it starts, also after the
folder was cleaned or restored. Where a file was edited meanwhile, the error says
what to do.

The journal and the audit log of the run record who has applied it.

With --publish it is about what the run has prepared with the tool publish: the
comments, pull requests and webhooks that spec.publish of its Agent declares.
They are shown; with --yes they are sent, each once, also if it is called again.
They are judged again, by the policies of the run and by those of -f. What they
ask about is sent only with --digest, which says exactly what was shown. If one
is refused, nothing is sent, and the exit code is 3.`,
		Example: `  agentctl diff @latest
  agentctl apply-changes @latest
  agentctl apply-changes @latest --publish -f manifests/reviewer
  agentctl apply-changes @latest --publish -f manifests/reviewer --yes`,
		GroupID:           groupRun,
		Args:              oneArg("the run (run/ID or @latest)"),
		ValidArgsFunction: a.completeAnyRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.runApplyChanges(cmd.Context(), args[0]) },
	}
	output(cmd, &o.output, "format: a list of the files, or one object")
	o.publishOptions.flags(cmd)
	o.target.flags(cmd)
	return cmd
}

func (o *applyChangesOptions) runApplyChanges(ctx context.Context, ref string) error {
	if err := o.check(); err != nil {
		return err
	}
	src, err := o.locateWord(ctx, ref)
	if err != nil {
		return err
	}
	defer src.close()
	id, err := src.local("apply-changes")
	if err != nil {
		return err
	}
	stdout := o.app.stdout()
	// A signal must not come between two files.
	ctx, signals := watch(ctx, stopNotice(o.app.stderr()))
	defer signals.stop()
	if o.publish {
		return o.runPublish(ctx, src, id)
	}
	applied, err := runs.Apply(ctx, runs.ApplyOptions{Ref: id, State: src.state, By: who(o.app.In)})
	if err != nil {
		return err
	}
	out := display.Applied{Run: applied.Run, Source: applied.Source, Files: applied.Files, Already: applied.Already}
	if o.output.value == display.FormatJSON {
		return out.WriteJSON(stdout)
	}
	return out.WriteText(stdout)
}
