package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/sources"
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
	d, err := sources.All().Define(planned)
	if err != nil {
		return nil, reason.New(reason.ToolError, "%w", err)
	}
	if d.Describes {
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

func (s *session) probe(ctx context.Context, d *tool.Definition) error {
	if err := s.containable(ctx); err != nil {
		return err
	}
	if err := s.hold(s.plan); err != nil {
		return err
	}
	s.pool.Dir = s.plan.files.Dir
	if d.Describes {
		return s.pool.Describe(ctx, d)
	}
	_, err := s.pool.Functions(ctx, d)
	return err
}

func factsOf(d *tool.Definition) *ToolFacts {
	f := &ToolFacts{Name: d.Name, Description: d.Description, Parameters: d.Parameters}
	f.Digest = tool.Pin(f.Name, f.Description, f.Parameters)
	return f
}
