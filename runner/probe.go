package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// ProbeOptions say which tool is tried. Tool is required, with the defaults of
// its kind written out.
type ProbeOptions struct {
	Tool *v1alpha1.Tool
	// State, AllowUnsandboxed and Containerd are those of RunOptions.
	State            string
	AllowUnsandboxed bool
	Containerd       string
}

// ToolFacts are what a tool's program says about itself.
type ToolFacts struct {
	// Name is the call name.
	Name, Description string
	Parameters        json.RawMessage
	// Digest of the name, the description and the parameters: sha256:...
	Digest string
}

// Probe tries whether a tool can be used on this host. A program that can tell
// what it takes is started once, contained as its manifest demands and without
// the variables it declares, asked, and ended; any other is looked for. Its
// errors have a reason: IsolationUnavailable, or ToolError for the program.
func Probe(ctx context.Context, o ProbeOptions) (*ToolFacts, error) {
	state, err := statedir.Find(o.State)
	if err != nil {
		return nil, err
	}
	planned := admission.Materialised(o.Tool)
	d, err := tool.Define(planned)
	if err != nil {
		return nil, reason.New(reason.ToolError, "%w", err)
	}
	if speaks(&d.Spec) {
		d.Parameters, d.Description = nil, "" // what the program says, not what the manifest says of it
	}
	s := newSession(RunOptions{State: state, AllowUnsandboxed: o.AllowUnsandboxed, Containerd: o.Containerd})
	s.id = s.ids("probe")
	dir, err := os.MkdirTemp("", "agentctl-probe-")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("probe tool %q: %w", d.Name, err), s.stop())
	}
	s.plan = &plan{Plan: &admission.Plan{}, tools: []tool.Definition{d}}
	s.plan.files.Dir = dir
	err = s.probe(ctx, &s.tools[0])
	if err = errors.Join(err, s.stop(), os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	return factsOf(&s.tools[0]), nil
}

// speaks says whether a tool's program can be asked what it takes.
func speaks(t *v1alpha1.ToolSpec) bool {
	c := t.Source.Container
	return t.Source.Plugin != nil || c != nil && c.Protocol != v1alpha1.ProtocolExec
}

func (s *session) probe(ctx context.Context, d *tool.Definition) error {
	if err := s.containable(ctx); err != nil {
		return err
	}
	if err := s.hold(s.plan); err != nil {
		return err
	}
	s.pool.Dir = s.plan.files.Dir
	switch {
	case speaks(&d.Spec):
		return s.pool.Describe(ctx, d)
	case d.Spec.Source.Builtin != nil:
		if _, err := sandbox.FindProgram(builtin.Program); err != nil {
			return reason.New(reason.ToolError, "tool %q: %w", d.Name, err)
		}
	case d.Spec.Source.Exec != nil:
		return findProgram(d.Name, d.Spec.Source.Exec.Command[0])
	}
	return nil
}

// findProgram looks for a program that is started for each call.
func findProgram(tool, program string) error {
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		return reason.New(reason.ToolError, "tool %q: %s is not an absolute path", tool, program)
	}
	if _, err := exec.LookPath(program); err != nil {
		return reason.New(reason.ToolError, "tool %q: find its program: %w", tool, err)
	}
	return nil
}

func factsOf(d *tool.Definition) *ToolFacts {
	f := &ToolFacts{Name: d.Name, Description: d.Description, Parameters: d.Parameters}
	f.Digest = tool.Pin(f.Name, f.Description, f.Parameters)
	return f
}
