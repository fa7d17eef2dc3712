package cli

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
)

type validateOptions struct {
	app    *app
	files  []string
	strict bool
	output choice
}

func (a *app) validateCmd() *cobra.Command {
	o := &validateOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON)}
	cmd := &cobra.Command{
		Use:   "validate -f FILE|FOLDER|-",
		Short: "Report every mistake in manifests",
		Long: `Report every mistake in manifests, with its place and a suggestion.

No program that a manifest names is started. A skill in an image is fetched, unless
it is kept in the state folder already.

With --strict every warning is a mistake, and skills must be as the Agent Skills
specification has them, so that other programs can use them, too: those that are
declared, and those in spec.skillFolders of the workspace that a Run names, else of
the current folder.

Exit code 0: no mistakes, perhaps warnings. 2: mistakes.`,
		Example: `  agentctl validate -f manifests/hello
  agentctl validate -k overlays/production
  agentctl validate -f agents --strict      # in continuous integration`,
		GroupID: groupManifest,
		Args:    filesOnly,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.runValidate(cmd.Context()) },
	}
	files(cmd, &o.files)
	cmd.Flags().BoolVar(&o.strict, "strict", false, "make mistakes of warnings, and hold skills to their specification")
	a.stateFlag(cmd)
	output(cmd, &o.output, "format: a report, or one object")
	return cmd
}

func (o *validateOptions) runValidate(ctx context.Context) error {
	if err := needFiles(o.files); err != nil {
		return err
	}
	report, err := runner.Validate(ctx, runner.ValidateOptions{Paths: o.files, Stdin: o.app.In, Strict: o.strict, State: o.app.state})
	if err != nil {
		return err
	}
	if o.output.value == display.FormatJSON {
		errs, warnings := report.Findings.Count()
		err = display.WriteFindings(o.app.stdout(), display.NewFindings(report.Documents, errs, warnings, report.Findings))
	} else {
		err = o.text(report)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if report.HasErrors() {
		return exit(reason.ExitUsage)
	}
	return nil
}

func (o *validateOptions) text(report *runner.Report) error {
	if err := report.Write(display.Mistakes(o.app.stderr()), math.MaxInt); err != nil {
		return err
	}
	if report.HasErrors() {
		return nil
	}
	return display.Valid(o.app.stdout(), report.Documents)
}
