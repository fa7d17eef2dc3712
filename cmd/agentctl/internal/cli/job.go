package cli

import (
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/cmd/agentctl/internal/ci"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
	"agentctl.dev/agentctl/runner"
)

// job adds --ci and --report.
func job(cmd *cobra.Command, system *choice, reports *[]ci.File) {
	cmd.Flags().Var(system, "ci", "CI system of the job; no question is asked in one, and models must have a version")
	_ = cmd.RegisterFlagCompletionFunc("ci", system.complete) // these fail only for a flag that is not there
	cmd.Flags().Var(&reportList{reports}, "report", "reports to write when the run has ended: `KIND=FILE`, several with commas, or repeated; kinds: "+strings.Join(ci.Kinds, ", "))
	_ = cmd.RegisterFlagCompletionFunc("report", completeReports)
}

// completeReports offers the kinds of reports.
func completeReports(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	kinds := make([]string, len(ci.Kinds))
	for i, kind := range ci.Kinds {
		kinds[i] = kind + "="
	}
	return kinds, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// reportList are the values of --report.
type reportList struct{ files *[]ci.File }

// String returns nothing: there is no default.
func (l *reportList) String() string { return "" }

// Set adds reports.
func (l *reportList) Set(text string) error {
	more, err := ci.ParseFiles(text)
	if err != nil {
		return err
	}
	*l.files = append(*l.files, more...)
	return nil
}

// Type names the flag's type in help.
func (l *reportList) Type() string { return "reports" }

// job is the job that the run is part of; nil where neither a system nor a report is named.
// In a job nothing that is shown becomes a command of the system.
func (o *runOptions) job(ro *runner.RunOptions) (*ci.Job, error) {
	a := o.app
	j := &ci.Job{
		System: ci.Detect(ci.System(o.ci.value), a.getenv), Log: a.Err, Getenv: a.getenv, Now: time.Now, Random: rand.Reader,
		Version: readVersion().Version, Agent: o.agent, Files: o.reports,
	}
	if err := j.Check(); err != nil {
		return nil, usage(err)
	}
	if j.System == ci.None {
		if len(j.Files) == 0 {
			return nil, nil //nolint:nilnil // there is none
		}
		return j, nil
	}
	switch o.approve {
	case "":
		ro.Approve = "never"
	case "prompt":
		return nil, usagef("--approve prompt: no question is asked in a job; leave it out, or --ci")
	}
	ro.Terminal, ro.Pinned, ro.Authored = nil, true, false // nobody types a prompt there
	objects := o.output.value != display.FormatText
	a.Out, a.Err = ci.Guard(a.Out, j.System, objects), ci.Guard(a.Err, j.System, false)
	return j, nil
}

// unbegun is why a run never began: the reason, and the message with the mistakes of the
// manifests.
func unbegun(err error) (reason.Reason, string) {
	if invalid, ok := errors.AsType[*runner.InvalidError](err); ok {
		var all []string
		found := runner.Report{Findings: invalid.Findings}
		for i := range found.Findings {
			if f := &found.Findings[i]; found.IsError(i) && len(all) < maxFindings {
				all = append(all, f.Position.String()+": "+f.Path+": "+f.Message)
			}
		}
		return reason.SpecInvalid, err.Error() + ": " + strings.Join(all, "; ")
	}
	if _, ok := errors.AsType[*reason.UsageError](err); ok {
		return reason.SpecInvalid, err.Error()
	}
	return reason.Of(err), err.Error()
}
