package plan

import (
	"encoding/json"
	"slices"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/tool"
)

// Reached is an agent that a call can start, and what bounds it there.
type Reached struct {
	Agent string `json:"agent"`
	// Above are the agents that start it, that of the run first.
	Above []string `json:"above"`
	// Tools by call name, and the policies that judge its calls.
	Tools    []string `json:"tools"`
	Policies []string `json:"policies"`
	// Ceilings are the policies that narrow what its own allow.
	Ceilings []string `json:"ceilings"`
}

// resolveBelow resolves an agent as it is below others.
func (o *Options) resolveBelow(c *admission.Catalog) (*admission.Plan, error) {
	path := append(slices.Clone(o.Above), o.Agent)
	p, err := c.Resolve(admission.ResolveOptions{Agent: path[0], Policies: o.RunPolicies})
	if err != nil {
		return nil, (&reason.UsageError{Err: err}).WithHint("name one with --agent; an agent that only others start is judged below them: --below AGENT")
	}
	for _, name := range path[1:] {
		s, _ := p.Subagent(name)
		child, ok := p.Child(name, s.Ceiling)
		if !ok || !slices.Contains(c.Starts(p), name) {
			return nil, reason.Usagef("agent %q starts no agent %q", p.Agent.Name, name).WithHint("--below names the agents above it, that of the run first")
		}
		p = child
	}
	return p, nil
}

// reaches lists the agents that a call can start, each once on the shortest way.
func (j *judgement) reaches() (all []Reached) {
	at := slices.IndexFunc(j.Definitions, func(d tool.Definition) bool { return d.Name == j.call.Tool })
	if at < 0 || len(j.Parents) >= j.maxDepth() {
		return nil
	}
	var first []string
	switch d := &j.Definitions[at]; {
	case d.Agent != "":
		first = []string{d.Agent}
	case d.Shipped == "task":
		var args struct{ Agent string }
		_ = json.Unmarshal(j.call.Args, &args) // they were checked
		for _, s := range j.Agent.Spec.Subagents {
			if args.Agent == "" || args.Agent == s.Name {
				first = append(first, s.Name)
			}
		}
	}
	type step struct {
		plan *admission.Plan
		name string
	}
	var level []step
	for _, name := range first {
		level = append(level, step{j.Plan.Plan, name})
	}
	seen := map[string]bool{}
	for depth := len(j.Parents); depth < j.maxDepth() && len(level) > 0; depth++ {
		var next []step
		for _, s := range level {
			entry, _ := s.plan.Subagent(s.name)
			child, ok := s.plan.Child(s.name, entry.Ceiling)
			if !ok || seen[s.name] {
				continue
			}
			seen[s.name] = true
			all = append(all, reached(child))
			for _, name := range j.catalog.Starts(child) {
				next = append(next, step{child, name})
			}
		}
		level = next
	}
	return all
}

func reached(p *admission.Plan) Reached {
	r := Reached{Agent: p.Agent.Name, Above: p.Parents, Tools: []string{}, Policies: []string{}, Ceilings: []string{}}
	for _, t := range p.Tools {
		r.Tools = append(r.Tools, t.CallName())
	}
	r.Policies = append(r.Policies, named(p.Policies)...)
	for _, c := range p.Ceilings {
		r.Ceilings = append(r.Ceilings, named(c.Policies)...)
	}
	return r
}

func named(policies []*v1alpha1.Policy) (names []string) {
	for _, p := range policies {
		names = append(names, p.Name)
	}
	return names
}
