package plan

import (
	"encoding/json"
	"fmt"
	"maps"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/prompt"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// ChildOptions say what a child run is to do.
type ChildOptions struct {
	v1alpha1.Subagent
	// Prompt is its first message. A model has written it, so nothing is filled in.
	Prompt string
	// Inputs of the agent.
	Inputs map[string]json.RawMessage
}

// Child returns the plan of a run that a call of this plan's run starts.
func (p *Plan) Child(o ChildOptions) (*Plan, error) {
	resolved, ok := p.Plan.Child(o.Name, o.Ceiling)
	if !ok {
		return nil, fmt.Errorf("agent %q is not in the plan of this run", o.Name)
	}
	resolved.MaxDepth, resolved.Retain = p.maxDepth(), p.Retain
	c := &Plan{Plan: resolved, Prompt: o.Prompt, Answers: p.Answers, Manifests: p.Manifests, registries: p.registries}
	var err error
	if c.Definitions, err = p.registries.define(resolved); err != nil {
		return nil, err
	}
	if c.Inputs, err = c.mergedInputs(&Options{RecordedInputs: maps.Clone(o.Inputs)}); err != nil {
		return nil, err
	}
	c.Origins = p.asked(c)
	if c.Instructions, err = prompt.Fill(c.Agent.Spec.Instructions, c.Inputs); err != nil {
		return nil, fmt.Errorf("agent %q: spec.instructions: %w", c.Agent.Name, err)
	}
	if _, err = c.Targets(); err != nil {
		return nil, err
	}
	c.Rules = resolved.Compiled()
	c.Workspace = p.Workspace
	switch o.Workspace {
	case v1alpha1.CopiedWorkspace:
		c.Workspace.Strategy, c.Workspace.Cloned = v1alpha1.StrategyCopy, false
	case v1alpha1.NoWorkspace:
		c.Workspace = workspace.Spec{Strategy: v1alpha1.StrategyEmpty, Skip: p.Workspace.Skip, GrowthLimit: p.Workspace.GrowthLimit}
		c.Manifests = nil
	default:
		c.Shares = true
	}
	c.findSkills()
	return c, nil
}

// Starter returns how the agent declares an agent that one of its calls starts, or why it
// must not: only agents that it names are started, and only as deep as the run allows.
func (p *Plan) Starter(t tool.Task) (s v1alpha1.Subagent, refused string) {
	s, listed := p.Subagent(t.Agent)
	if !listed && !t.Declared {
		return s, fmt.Sprintf("agent %s must not start agent %q: it is not in its spec.subagents", p.Agent.Name, t.Agent)
	}
	if most := p.maxDepth(); len(p.Parents) >= most {
		return s, fmt.Sprintf("agent %q is not started: this agent is at depth %d, and limits.maxDepth of the run is %d; do the work yourself", t.Agent, len(p.Parents), most)
	}
	return s, ""
}

// maxDepth is how many agents may be above one another below the agent at the top.
func (p *Plan) maxDepth() int {
	if len(p.Parents) > 0 {
		return p.MaxDepth
	}
	if d := p.Limits.MaxDepth; d != nil {
		return int(*d)
	}
	return 0
}

// AllRules are the compiled policies that judge calls, those of the ceilings included.
func (p *Plan) AllRules() []*policy.Compiled {
	all := p.Rules
	for _, c := range p.CompiledCeilings() {
		all = append(all[:len(all):len(all)], c.Policies...)
	}
	return all
}
