package cli

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/ci"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
)

// formatSARIF is the format of code scanning.
const formatSARIF = "sarif"

type validateOptions struct {
	app    *app
	files  []string
	strict bool
	output choice
}

func (a *app) validateCmd() *cobra.Command {
	o := &validateOptions{app: a, output: newChoice(display.FormatText, display.FormatJSON, formatSARIF)}
	cmd := &cobra.Command{
		Use:   "validate -f FILE|FOLDER|-",
		Short: "Report every mistake in manifests",
		Long: `Report every mistake in manifests, with its place and a suggestion.

No program that a manifest names is started. A skill in an image is fetched, unless
it is kept in the state folder already.

With --strict every warning is a mistake, and skills must be as the Agent Skills
specification has them, so that other programs can use them, too: those that are
declared, and those in spec.skillFolders of the workspace that a Run names, else of
the current folder. What is a risk where nobody watches is a mistake then, too: models
and fetched programs without a version, tools that reach every server, rules that never
count, and instructions that hold an input which can be any text.

Each finding has a rule, which -o json and -o sarif show.

Exit code 0: no mistakes, perhaps warnings. 2: mistakes.`,
		Example: `  agentctl validate -f manifests/hello
  agentctl validate -k overlays/production
  agentctl validate -f agents --strict      # in continuous integration
  agentctl validate -f agents --strict -o sarif > agents.sarif`,
		GroupID: groupManifest,
		Args:    filesOnly,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.runValidate(cmd.Context()) },
	}
	files(cmd, &o.files)
	cmd.Flags().BoolVar(&o.strict, "strict", false, "make mistakes of warnings and of risks, and hold skills to their specification")
	a.stateFlag(cmd)
	output(cmd, &o.output, "format: a report, one object, or SARIF 2.1.0")
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
	switch o.output.value {
	case display.FormatJSON:
		errs, warnings := report.Findings.Count()
		err = display.WriteFindings(o.app.stdout(), display.NewFindings(report.Documents, errs, warnings, report.Findings))
	case formatSARIF:
		err = o.sarif(report)
	default:
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

// sarif writes the findings with paths below the current folder, where they are there.
func (o *validateOptions) sarif(report *runner.Report) error {
	analysis := ci.Analysis{Category: "validate", Version: readVersion().Version, Rules: map[string]string{}}
	for rule, text := range runner.RuleMeanings {
		analysis.Rules[string(rule)] = text
	}
	if report.HasErrors() {
		analysis.ExitCode = reason.ExitUsage
	}
	for i := range report.Findings {
		f := &report.Findings[i]
		level := ci.Warning
		if report.IsError(i) {
			level = ci.Error
		}
		text := f.Message
		if f.Path != "" {
			text = f.Path + ": " + text
		}
		if f.Suggestion != "" {
			text += "; " + f.Suggestion
		}
		analysis.Findings = append(analysis.Findings, ci.NewFinding(string(f.Rule), level, text, fromHere(f.Position.File), f.Position.Line, f.Position.Col))
	}
	text, err := analysis.SARIF()
	if err != nil {
		return err
	}
	_, err = o.app.stdout().Write(text)
	return err
}

// fromHere is a path relative to the current folder, if it is below it.
func fromHere(file string) string {
	if !filepath.IsAbs(file) {
		return file
	}
	here, err := os.Getwd()
	if err != nil {
		return file
	}
	if below, err := filepath.Rel(here, file); err == nil {
		return below
	}
	return file
}
