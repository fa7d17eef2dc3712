package runner

import (
	"encoding/json"
	"fmt"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/workspace"
)

// record is the plan as it is written down at the start of a run: with the
// journal it is all that a resume needs.
type record struct {
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
	// The wishes of the command line that hold for the whole run.
	AllowUnsandboxed bool `json:"allowUnsandboxed,omitempty"`
	FailOnDenied     bool `json:"failOnDenied,omitempty"`
}

func (s *session) record() ([]byte, error) {
	b, err := json.Marshal(record{
		Plan: s.Plan, System: s.system, Exclude: s.plan.files.Exclude, SizeLimit: s.plan.files.SizeLimit, GrowthLimit: s.plan.files.GrowthLimit, Strategy: s.plan.files.Strategy, Manifests: s.manifests,
		AllowUnsandboxed: s.opts.AllowUnsandboxed, FailOnDenied: s.opts.FailOnDenied,
	})
	if err != nil {
		return nil, fmt.Errorf("write down the plan: %w", err)
	}
	return b, nil
}

// readRecord reads the plan of a run.
func readRecord(dir string, v *view.Run) (*record, error) {
	b, err := journal.ReadBlob(dir, v.Started.Plan)
	if err != nil {
		return nil, fmt.Errorf("plan of run %s: %w", v.ID, err)
	}
	r := &record{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("plan of run %s: %w", v.ID, err)
	}
	if r.Plan == nil || r.Agent == nil || r.Model == nil {
		return nil, fmt.Errorf("plan of run %s: it names no agent and no model", v.ID)
	}
	return r, nil
}

// plan makes the plan anew: nothing of it comes from the manifests, which may
// have changed since.
func (r *record) plan(v *view.Run, o *ResumeOptions) (*plan, error) {
	p := &plan{Plan: r.Plan, compiled: r.Compiled(), prompt: v.Started.Prompt, system: r.System, manifests: r.Manifests}
	var err error
	if p.tools, err = define(r.Plan); err != nil {
		return nil, err
	}
	if len(v.Started.Inputs) > 0 {
		if err := json.Unmarshal(v.Started.Inputs, &p.inputs); err != nil {
			return nil, fmt.Errorf("inputs of run %s: %w", v.ID, err)
		}
	}
	if p.answers, err = approval.Parse(o.Approve); err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	p.files = workspace.Spec{
		Strategy: r.Strategy, Source: v.Started.Workspace.Source,
		Exclude: r.Exclude, SizeLimit: r.SizeLimit, GrowthLimit: r.GrowthLimit, Skip: []string{o.State},
	}
	return p, nil
}
