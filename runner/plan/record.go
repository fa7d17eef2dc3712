package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// Record is the plan as it is stored at the start of a run: with the journal it is
// all that a resume needs.
type Record struct {
	*admission.Plan
	// System is the system prompt as the model was sent it.
	System string `json:"system"`
	// Exclude, SizeLimit and GrowthLimit of the workspace.
	Exclude     []string                   `json:"exclude,omitempty"`
	SizeLimit   int64                      `json:"sizeLimit,omitempty"`
	GrowthLimit int64                      `json:"growthLimit,omitempty"`
	Strategy    v1alpha1.WorkspaceStrategy `json:"strategy"`
	// Manifests that lie in the workspace, as paths in it.
	Manifests []string `json:"manifests,omitempty"`
	// Shares says that the files are those of the run that has started this one.
	Shares bool `json:"shares,omitempty"`
	// Options of the command line that apply to the whole run.
	AllowUnsandboxed bool `json:"allowUnsandboxed,omitempty"`
	FailOnDenied     bool `json:"failOnDenied,omitempty"`
	// Served means that clients made the calls, in place of a model.
	Served bool `json:"served,omitempty"`
	// Paths are the files and folders that the manifests were read from: another turn reads
	// them again. None where they cannot be.
	Paths []string `json:"paths,omitempty"`

	// Functions are kept beside the plan: they are known after it was stored.
	Functions map[string][]tool.Function `json:"-"`
}

// Record returns what is stored of the plan, with the system prompt of its run.
func (p *Plan) Record(system string) *Record {
	w := p.Workspace
	return &Record{
		Plan: p.Plan, System: system, Exclude: w.Exclude, SizeLimit: w.SizeLimit, GrowthLimit: w.GrowthLimit, Strategy: w.Strategy, Manifests: p.Manifests, Served: p.Served, Shares: p.Shares,
	}
}

// ReadRecord reads the stored plan of a run.
func ReadRecord(dir string, v *view.Run) (*Record, error) {
	b, err := journal.ReadBlob(dir, v.Started.Plan)
	if err != nil {
		return nil, fmt.Errorf("plan of run %s: %w", v.ID, err)
	}
	r := &Record{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("plan of run %s: %w", v.ID, err)
	}
	if r.Plan == nil || r.Agent == nil || r.Model == nil {
		return nil, fmt.Errorf("plan of run %s: it names no agent and no model", v.ID)
	}
	r.Functions = map[string][]tool.Function{}
	for _, described := range v.Described {
		b, err := journal.ReadBlob(dir, described.Definitions)
		var found []tool.Function
		if err == nil {
			err = json.Unmarshal(b, &found)
		}
		if err != nil {
			return nil, fmt.Errorf("functions of tool %q of run %s: %w", described.Tool, v.ID, err)
		}
		r.Functions[described.Tool] = found
	}
	return r, nil
}

// Restore returns the plan of a run that is resumed. Nothing of it is read from the
// manifests, which may have changed since. Only State, Approve and the Registries of the
// options count.
func (r *Record) Restore(v *view.Run, o Options) (*Plan, error) {
	p, err := r.Recorded(v.Started, o.Registries)
	if err != nil {
		return nil, err
	}
	p.Rules = r.Compiled()
	if p.Answers, err = approval.Parse(o.Approve); err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	p.Workspace.Source, p.Workspace.Skip = v.Started.Workspace.Source, []string{o.State}
	p.Workspace.Cloned = v.Started.Workspace.Git != nil
	return p, nil
}

// Again returns the recorded plan as that of a new run. Only State, Approve, Workspace,
// RecordedFiles and the Registries of the options count.
func (r *Record) Again(started event.RunStarted, o Options) (*Plan, error) {
	p, err := r.Recorded(started, o.Registries)
	if err != nil {
		return nil, err
	}
	p.Functions = nil // the new run asks its programs itself
	p.Rules, p.System, p.Attached, p.Workspace.Skip = r.Compiled(), "", o.RecordedFiles, []string{o.State}
	if p.Instructions, err = prompt.Fill(p.Agent.Spec.Instructions, p.Inputs); err != nil {
		return nil, reason.Usagef("agent %q: spec.instructions: %w", p.Agent.Name, err)
	}
	if p.Answers, err = approval.Parse(o.Approve); err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	if o.Workspace != "" {
		if p.Workspace.Source, err = filepath.EvalSymlinks(o.Workspace); err == nil {
			p.Workspace.Source, err = filepath.Abs(p.Workspace.Source)
		}
		if err != nil {
			return nil, reason.Usagef("workspace %s: %w", o.Workspace, err).WithHint("name an existing folder with --workspace")
		}
	}
	return p, p.usable()
}

// Recorded returns the plan of a run as it was recorded, without its rules.
func (r *Record) Recorded(started event.RunStarted, known Registries) (*Plan, error) {
	p := &Plan{
		Plan: r.Plan, Functions: r.Functions, Prompt: started.Prompt, Expansions: started.Expansions, Origins: originsOf(started), System: r.System, Manifests: r.Manifests, Served: r.Served, Shares: r.Shares, registries: known,
	}
	p.Workspace = workspace.Spec{Strategy: r.Strategy, Exclude: r.Exclude, SizeLimit: r.SizeLimit, GrowthLimit: r.GrowthLimit}
	var err error
	if p.Definitions, err = known.define(r.Plan); err != nil {
		return nil, err
	}
	if len(started.Inputs) > 0 {
		if err := json.Unmarshal(started.Inputs, &p.Inputs); err != nil {
			return nil, fmt.Errorf("inputs: %w", err)
		}
	}
	return p, nil
}

// WithPolicies is the recorded plan with the policies and the ceilings of another one. What
// it resolves is not shared.
func (p *Plan) WithPolicies(resolved *admission.Plan) *Plan {
	now, own := *p, *p.Plan
	own.Policies, own.Ceilings, own.Sources = resolved.Policies, resolved.Ceilings, maps.Clone(p.Sources)
	if own.Sources == nil {
		own.Sources = map[string]string{}
	}
	now.Plan = &own
	now.Rules = own.Compile(own.Policies)
	return &now
}
