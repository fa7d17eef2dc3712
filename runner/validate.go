package runner

import (
	"context"
	"io"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/manifest"
)

// ValidateOptions say what to look at.
type ValidateOptions struct {
	// Paths are files, folders or "-" (Stdin). Required.
	Paths []string
	Stdin io.Reader
}

// Report is what a validation found.
type Report struct {
	Findings manifest.Findings
	// Documents that were read.
	Documents int
}

// HasErrors says whether the manifests may not be used.
func (r *Report) HasErrors() bool { return r.Findings.HasErrors() }

// Write prints at most limit findings as a compiler does.
func (r *Report) Write(w io.Writer, limit int) error { return r.Findings.Write(w, limit) }

// Validate reads manifests and reports all mistakes at once. It starts no
// program and changes nothing.
func Validate(ctx context.Context, o ValidateOptions) (*Report, error) {
	if len(o.Paths) == 0 {
		return nil, reason.Usagef("no manifests are named").WithHint("name a file, a folder or - with -f")
	}
	set, _, found := admission.Read(ctx, o.Paths, o.Stdin, admitted(admission.Options{Cases: true, Programs: true}))
	return &Report{Findings: found, Documents: len(set.Documents) + len(set.Cases)}, nil
}
