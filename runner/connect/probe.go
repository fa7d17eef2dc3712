package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/environment"
	"agentctl.dev/agentctl/runner/execution"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

// ProbeOptions name the tool to probe. Tool is required, with the defaults of
// its kind written out.
type ProbeOptions struct {
	Tool *v1alpha1.Tool
	// State, AllowUnsandboxed and Containerd are those of runner.RunOptions.
	State            string
	AllowUnsandboxed bool
	Containerd       string
}

// ToolFacts are what a tool's program reports about itself.
type ToolFacts struct {
	// Name is the call name.
	Name, Description string
	Parameters        json.RawMessage
	// Functions of a Tool that provides several; its Digest is then over all of them.
	Functions []tool.Function
	// Digest of the name, the description and the parameters: sha256:...; "" for a server
	// that only runs ask.
	Digest string
}

// Probe checks whether a tool can be used on this host. A program that can
// describe its functions is started once, contained as its manifest demands and
// without the variables it declares, asked, and ended; of any other it only
// checks that the program exists. Its errors have a reason:
// IsolationUnavailable, or ToolError for the program.
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
		d.Parameters, d.Description = nil, "" // what the program reports, not what the manifest has
	}
	on := environment.NewHost(environment.HostOptions{Kinds: sources.All(), State: state, AllowUnsandboxed: o.AllowUnsandboxed, Containerd: o.Containerd})
	dir, err := os.MkdirTemp("", "agentctl-probe-")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("probe tool %q: %w", d.Name, err), on.Close())
	}
	found, err := on.Probe(ctx, execution.NewIDs(time.Now)("probe"), d, dir)
	if err = errors.Join(err, on.Close(), os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	facts := factsOf(&found.Definition)
	switch {
	case found.Functions == nil && d.Select != nil: // it was not asked: a run pins what it is served
		facts.Digest = ""
	case found.Functions != nil:
		facts.Functions, facts.Digest = found.Functions, tool.PinAll(&d, found.Functions)
	}
	return facts, nil
}

func factsOf(d *tool.Definition) *ToolFacts {
	f := &ToolFacts{Name: d.Name, Description: d.Description, Parameters: d.Parameters}
	f.Digest = tool.Pin(f.Name, f.Description, f.Parameters)
	return f
}
