package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/workspace"
)

// Earlier is a run that has ended, with the plan of its newest turn.
type Earlier struct {
	Run    *view.Run
	Record *Record
	// Files is the folder with the files as the turn before has left them; "" where the turn
	// begins with those of the source.
	Files string
}

// keep gives the plan the files of the turn before: what its manifests say of the workspace
// counts for another run.
func (p *Plan) keep(e *Earlier, o *Options) {
	r, w := e.Record, e.Run.Started.Workspace
	p.Workspace = workspace.Spec{
		Strategy: r.Strategy, Exclude: r.Exclude, SizeLimit: r.SizeLimit, GrowthLimit: r.GrowthLimit,
		Source: w.Source, Cloned: w.Git != nil, Skip: []string{o.State},
	}
}

// inputs gives an agent that goes on the inputs that it had.
func (e *Earlier) inputs(o *Options, agent string) {
	if e == nil || e.Run.Started.Agent != agent || len(e.Run.Started.Inputs) == 0 {
		return
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(e.Run.Started.Inputs, &given) == nil { // the journal has what a run has written
		o.RecordedInputs, o.RecordedOrigins.Inputs = given, e.Run.Started.InputOrigins
	}
}

// brought are the policies that the repository has brought to the turn before.
func (e *Earlier) brought() (all []admission.Ceiling) {
	for _, c := range e.Record.Ceilings {
		if c.Repository {
			all = append(all, c)
		}
	}
	return all
}

// Changes are what a turn declares otherwise than the turn before.
type Changes struct {
	// Texts are for people, a line each.
	Texts []string
	// Rules: an approval for always was given for another agent, other tools or other policies.
	Rules bool
}

// Since lists what differs from the turn before.
func (p *Plan) Since(e *Earlier) (c Changes) {
	was := e.Record
	add := func(rules bool, format string, args ...any) {
		c.Texts, c.Rules = append(c.Texts, fmt.Sprintf(format, args...)), c.Rules || rules
	}
	if was.Agent.Name != p.Agent.Name {
		add(true, "the agent was %s and is %s", was.Agent.Name, p.Agent.Name)
	} else if was.Agent.Spec.Instructions != p.Agent.Spec.Instructions {
		add(false, "the instructions of agent %s differ", p.Agent.Name)
	}
	if was.Model.Name != p.Model.Name {
		add(false, "the model was %s and is %s", was.Model.Name, p.Model.Name)
	} else if !sameJSON(was.Model.Spec, p.Model.Spec) {
		add(false, "model %s is declared otherwise", p.Model.Name)
	}
	if !sameJSON(was.Limits, p.Limits) {
		add(false, "the limits differ")
	}
	tool := func(name string) func(admission.PlannedTool) bool {
		return func(t admission.PlannedTool) bool { return t.Tool.Name == name }
	}
	for _, t := range p.Tools {
		switch i := slices.IndexFunc(was.Tools, tool(t.Tool.Name)); {
		case i < 0:
			add(true, "tool %s is new", t.Tool.Name)
		case !sameJSON(was.Tools[i], t):
			add(true, "tool %s is declared otherwise", t.Tool.Name)
		}
	}
	for _, t := range was.Tools {
		if !slices.ContainsFunc(p.Tools, tool(t.Tool.Name)) {
			add(true, "tool %s is gone", t.Tool.Name)
		}
	}
	if !sameJSON(was.Subagents, p.Subagents) {
		add(true, "the agents that it can start are declared otherwise")
	}
	if !sameJSON(was.Skills, p.Skills) {
		add(true, "the skills differ")
	}
	before, now := policiesOf(was.Plan), policiesOf(p.Plan)
	for _, pol := range now {
		switch i := slices.IndexFunc(before, called(pol.Name)); {
		case i < 0:
			add(true, "policy %s is new", pol.Name)
		case !sameJSON(before[i].Spec, pol.Spec):
			add(true, "policy %s differs", pol.Name)
		}
	}
	for _, pol := range before {
		if !slices.ContainsFunc(now, called(pol.Name)) {
			add(true, "policy %s is gone", pol.Name)
		}
	}
	return c
}

func called(name string) func(*v1alpha1.Policy) bool {
	return func(p *v1alpha1.Policy) bool { return p.Name == name }
}

// policiesOf are those of the agent and those that narrow it.
func policiesOf(p *admission.Plan) []*v1alpha1.Policy {
	all := slices.Clone(p.Policies)
	for _, c := range p.Ceilings {
		all = append(all, c.Policies...)
	}
	return all
}
