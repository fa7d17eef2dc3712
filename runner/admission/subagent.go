package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/schema"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// Ceiling is a set of policies that only narrow what the policies of an agent allow.
type Ceiling struct {
	// Agent whose policies they are; "" for those of the run, which hold for every agent
	// in it.
	Agent string `json:"agent,omitempty"`
	// Repository means that the repository has brought them; see Catalog.Bring.
	Repository bool               `json:"repository,omitempty"`
	Policies   []*v1alpha1.Policy `json:"policies"`
}

// taskTool is the shipped tool that starts subagents, mergeTool the one that takes over what
// they have changed in a copy.
const (
	taskTool  = "task"
	mergeTool = "task_apply"
)

// planCeiling adds the policies that the run names, and those of the options.
func (c *Catalog) planCeiling(p *Plan, more []string) error {
	all := slices.Clone(more)
	if p.Run != nil {
		for _, ref := range p.Run.Spec.PolicyRefs {
			all = append(all, ref.Name)
		}
	}
	slices.Sort(all)
	ceiling := Ceiling{}
	for _, name := range slices.Compact(all) {
		e, ok := c.Policies[name]
		if !ok {
			return missing(v1alpha1.KindPolicy, name, names(c.Policies))
		}
		ceiling.Policies = append(ceiling.Policies, e.Object.DeepCopy())
		p.declare(e.Doc)
	}
	if len(ceiling.Policies) > 0 {
		p.Ceilings = []Ceiling{ceiling}
	}
	return nil
}

// planTask offers an agent with subagents the tool that starts them, unless it lists the
// tool itself. The model reads which agents there are.
func (c *Catalog) planTask(p *Plan) error {
	if len(p.Agent.Spec.Subagents) == 0 {
		return nil
	}
	at, err := p.offer(taskTool)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(p.Agent.Spec.Subagents, copied) {
		if _, err := p.offer(mergeTool); err != nil {
			return err
		}
	}
	var text strings.Builder
	text.WriteString(p.Tools[at].Tool.Spec.Description + "\nAgents:")
	for _, s := range p.Agent.Spec.Subagents {
		fmt.Fprintf(&text, "\n- %s", s.Name)
		if e, ok := c.Agents[s.Name]; ok && e.Object.Spec.Description != "" {
			text.WriteString(": " + e.Object.Spec.Description)
		}
		if copied(s) {
			text.WriteString(" (works on a copy of the files; what it changes is taken over by " + mergeTool + ")")
		}
	}
	p.Tools[at].Tool.Spec.Description = text.String()
	return nil
}

// copied reports whether a subagent works on a copy of the files.
func copied(s v1alpha1.Subagent) bool { return s.Workspace == v1alpha1.CopiedWorkspace }

// offer adds a shipped tool unless the agent lists it, and returns its place.
func (p *Plan) offer(name string) (at int, err error) {
	at = slices.IndexFunc(p.Tools, func(t PlannedTool) bool { return builtin.Named(&t.Tool.Spec.Source) == name })
	if at >= 0 {
		return at, nil
	}
	t, err := shipped(name)
	if err != nil {
		return 0, err
	}
	materialise(t)
	p.Tools = append(p.Tools, PlannedTool{Tool: t})
	return len(p.Tools) - 1, nil
}

// planSubagents adds the plans of all agents that may be started below the agent of a
// run, as deep as its limit lets them. Models replace their own.
func (c *Catalog) planSubagents(p *Plan, models map[string]string) error {
	most := 0
	if d := p.Limits.MaxDepth; d != nil {
		most = int(*d)
	}
	level := []*Plan{p}
	for depth := 0; depth < most && len(level) > 0; depth++ {
		var next []*Plan
		for _, parent := range level {
			for _, name := range c.Starts(parent) {
				e, ok := c.Agents[name]
				if !ok || p.Subagents[name] != nil {
					continue
				}
				sub, err := c.planAgent(e, models[name], "")
				if err != nil {
					return fmt.Errorf("subagent %q: %w", name, err)
				}
				maps.Copy(p.Sources, sub.Sources)
				sub.Sources = nil
				if p.Subagents == nil {
					p.Subagents = map[string]*Plan{}
				}
				p.Subagents[name] = sub
				next = append(next, sub)
			}
		}
		level = next
	}
	return nil
}

// Starts returns the agents that an agent may start.
func (c *Catalog) Starts(p *Plan) []string {
	var all []string
	for _, s := range p.Agent.Spec.Subagents {
		all = append(all, s.Name)
	}
	for _, t := range p.Tools {
		if f, _ := c.kinds.Facts(&t.Tool.Spec); f.Agent != "" {
			all = append(all, f.Agent)
		}
	}
	return all
}

// Subagent returns how the agent declares an agent that it may start.
func (p *Plan) Subagent(name string) (v1alpha1.Subagent, bool) {
	at := slices.IndexFunc(p.Agent.Spec.Subagents, func(s v1alpha1.Subagent) bool { return s.Name == name })
	if at < 0 {
		return v1alpha1.Subagent{Name: name, Ceiling: v1alpha1.CeilingRun, Workspace: v1alpha1.SharedWorkspace}, false
	}
	return p.Agent.Spec.Subagents[at], true
}

// Child returns the plan of an agent that this one starts; false for one that no agent
// of the tree may start.
func (p *Plan) Child(name string, ceiling v1alpha1.SubagentCeiling) (*Plan, bool) {
	own, ok := p.Subagents[name]
	if !ok {
		return nil, false
	}
	child := *own
	child.Subagents, child.MaxDepth, child.Sources, child.Pins, child.known = p.Subagents, p.MaxDepth, p.Sources, p.Pins, p.known
	child.Parents = append(slices.Clone(p.Parents), p.Agent.Name)
	child.Ceilings = p.ceilingsOf(child.Agent, ceiling)
	if p.Run != nil { // rules read its labels
		child.Run = &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: p.Run.Name, Labels: p.Run.Labels}}
	}
	return &child, true
}

// ceilingsOf are the policies that narrow a child of the plan's agent. A policy that
// selects the child is one of the child's own.
func (p *Plan) ceilingsOf(child *v1alpha1.Agent, declared v1alpha1.SubagentCeiling) (all []Ceiling) {
	for _, c := range p.Ceilings {
		if c.Agent != "" {
			c.Policies = slices.DeleteFunc(slices.Clone(c.Policies), func(pol *v1alpha1.Policy) bool { return selects(pol, child) })
		}
		all = append(all, c)
	}
	own := Ceiling{Agent: p.Agent.Name}
	for _, pol := range p.Policies {
		if (declared == v1alpha1.CeilingParent || selects(pol, p.Agent)) && !selects(pol, child) {
			own.Policies = append(own.Policies, pol)
		}
	}
	all = append(all, own)
	return slices.DeleteFunc(all, func(c Ceiling) bool { return len(c.Policies) == 0 })
}

// CompiledCeilings are the ceilings with their policies compiled.
func (p *Plan) CompiledCeilings() []policy.Ceiling {
	var all []policy.Ceiling
	for _, c := range p.Ceilings {
		var rules []*policy.Compiled
		for _, pol := range c.Policies {
			if done := p.known[pol.Name]; done != nil {
				rules = append(rules, done)
			} else {
				rules = append(rules, p.Compile([]*v1alpha1.Policy{pol})...)
			}
		}
		all = append(all, policy.Ceiling{Policies: rules, Tightens: c.Repository})
	}
	return all
}

// everyPolicy are the policies of the plan and of all agents below it.
func (p *Plan) everyPolicy() (all []*v1alpha1.Policy) {
	all = append(all, p.Policies...)
	for _, c := range p.Ceilings {
		all = append(all, c.Policies...)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Subagents)) {
		all = append(all, p.Subagents[name].Policies...)
	}
	return all
}

// subagents checks the agents that an agent may start.
func (a *admitter) subagents(d *manifest.Document, ag *v1alpha1.Agent) {
	agents := names(a.catalog.Agents)
	for i, ref := range ag.Spec.Subagents {
		at := manifest.Index("spec.subagents", i) + ".name"
		if a.reference(d, at, v1alpha1.KindAgent, ref.Name, agents) {
			a.startable(d, at, ref.Name)
		}
	}
	task := slices.ContainsFunc(ag.Spec.Tools, func(t v1alpha1.AgentTool) bool { return t.Name == taskTool })
	if _, declared := a.catalog.Tools[taskTool]; task && !declared && len(ag.Spec.Subagents) == 0 {
		a.add(d.Warnf("spec.tools", "the tool task starts subagents, and the agent has none").With("name them in spec.subagents"))
	}
	merge := slices.ContainsFunc(ag.Spec.Tools, func(t v1alpha1.AgentTool) bool { return t.Name == mergeTool })
	if merge && !slices.ContainsFunc(ag.Spec.Subagents, copied) && !slices.ContainsFunc(ag.Spec.Tools, a.catalog.codes) {
		a.add(d.Warnf("spec.tools", "the tool task_apply takes over what subagents have changed in a copy, and none has one").With("set workspace: Copy in spec.subagents"))
	}
}

// codes reports whether a tool of an agent runs coding agents of others.
func (c *Catalog) codes(t v1alpha1.AgentTool) bool {
	if declared, ok := c.Tools[t.Name]; ok {
		return builtin.Codes(builtin.Named(&declared.Object.Spec.Source))
	}
	return builtin.Codes(t.Name)
}

// startable refuses an agent that is started by runs only.
func (a *admitter) startable(d *manifest.Document, at, name string) {
	if sub, ok := a.catalog.Agents[name]; ok && sub.Object.Spec.Mode == v1alpha1.ModePrimary {
		a.add(d.Errorf(at, "agent %q has mode Primary: it is started by runs only", name))
	}
}

// agentParameters holds the parameters of a tool that starts an agent against what the
// agent takes: a prompt, and its inputs.
func (a *admitter) agentParameters(d *manifest.Document, t *v1alpha1.Tool, name string) {
	e, ok := a.catalog.Agents[name]
	if !ok || t.Spec.Parameters == nil || len(t.Spec.Parameters.Raw) == 0 || d.Faulty("spec.parameters") {
		return
	}
	given, err := schema.Compile(t.Spec.Parameters.Raw)
	if err != nil {
		return // reported with the schema
	}
	var inputs []string
	if in := e.Object.Spec.Inputs; in != nil {
		if s, err := schema.Compile(in.Schema.Raw); err == nil {
			inputs = s.Properties()
		}
	}
	for _, name := range given.Properties() {
		if name != promptParameter && !slices.Contains(inputs, name) {
			a.add(d.Errorf("spec.parameters", "agent %q declares no input %q, and would never read that argument", e.Object.Name, name).
				With("declare it in spec.inputs.schema of the Agent; the argument prompt is its first message"))
		}
	}
}

// promptParameter is the argument that becomes the first message of an agent.
const promptParameter = "prompt"
