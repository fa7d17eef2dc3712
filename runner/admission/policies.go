package admission

import (
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// policies compiles every policy against every tool that a call may have: those
// of the manifests, and the built-in ones. The compiled policies are kept, so
// that a run does not compile them again.
func (a *admitter) policies() {
	if len(a.catalog.Policies) == 0 {
		return
	}
	tools, ambiguous, err := a.catalog.tools()
	if err != nil {
		a.add(manifest.Finding{Severity: manifest.Error, Message: err.Error()})
		return
	}
	a.catalog.ambiguous = ambiguous
	before := slices.Clone(a.found)
	for _, name := range names(a.catalog.Policies) {
		e := a.catalog.Policies[name]
		compiled, problems := a.opts.Policies.Compile(e.Object, tools)
		if !a.catalog.shipped[name] {
			a.matchedAgents(e)
		}
		a.catalog.compiled[name] = compiled
		for _, p := range problems {
			if !told(before, e.Doc, p.Path) {
				a.add(problem(e.Doc, p))
			}
		}
	}
}

// matchedAgents warns of a rule for agents that do not exist. Manifests without
// any agent are not checked: they may be used together with others.
func (a *admitter) matchedAgents(e Entry[v1alpha1.Policy]) {
	agents := names(a.catalog.Agents)
	for i := range e.Object.Spec.Rules {
		m := &e.Object.Spec.Rules[i].Match
		if len(m.Agents) == 0 || len(agents) == 0 || slices.ContainsFunc(agents, func(name string) bool { return policy.MatchesAgent(m, name) }) {
			continue
		}
		a.add(e.Doc.Warnf(manifest.Index("spec.rules", i)+".match.agents", "no agent given here is selected, so the rule never counts").As(manifest.RuleNeverMatches).
			With(manifest.Suggest(m.Agents[0], agents)))
	}
}

// told reports whether a finding about a field exists already.
func told(before manifest.Findings, d *manifest.Document, path string) bool {
	return d.Faulty(path) || slices.ContainsFunc(before, func(f manifest.Finding) bool {
		return f.Path == path && f.Position.File == d.File
	})
}

// problem turns what the policy compiler says into a finding.
func problem(d *manifest.Document, p policy.Problem) manifest.Finding {
	f := d.ErrorInside(p.Path, p.Line, p.Col, "%s", p.Message).With(p.Suggestion)
	if p.Warning {
		f.Severity = manifest.Warning
	}
	if p.Never {
		f.Rule = manifest.RuleNeverMatches
	}
	return f
}

// tools are all that a policy can meet, one for each call name, sorted. They are ambiguous
// if two of them share a call name.
func (c *Catalog) tools() (tools []policy.Tool, ambiguous bool, err error) {
	byName := map[string]policy.Tool{}
	for _, name := range names(c.Tools) {
		t := c.Tools[name].Object.DeepCopy()
		materialise(t)
		if _, taken := byName[CallName(t)]; taken {
			ambiguous = true
			continue
		}
		known := policyTool(t)
		if known.Several = known.Several || c.choosesOf(name); known.Several {
			known.Schema = nil
		}
		byName[CallName(t)] = known
		if _, own := builtin.Lookup(CallName(t)); own && t.Name != CallName(t) {
			// An agent that lists the shipped tool by its own name gets that tool,
			// whose risk and effects may differ.
			ambiguous = true
		}
	}
	for _, t := range c.scriptTools() {
		if _, taken := byName[t.Spec.CallName]; taken {
			ambiguous = true
			continue
		}
		byName[t.Spec.CallName] = policyTool(t)
	}
	for _, name := range builtin.Names() {
		if _, taken := byName[name]; taken {
			continue
		}
		t, err := shipped(name)
		if err != nil {
			return nil, false, err
		}
		materialise(t)
		byName[name] = policyTool(t)
	}
	tools = make([]policy.Tool, 0, len(byName))
	for _, t := range byName {
		tools = append(tools, t)
	}
	slices.SortFunc(tools, func(x, y policy.Tool) int { return strings.Compare(x.Name, y.Name) })
	return tools, ambiguous, nil
}

// choosesOf reports whether an agent chooses among the functions of a Tool.
func (c *Catalog) choosesOf(tool string) bool {
	for _, a := range c.Agents {
		if slices.ContainsFunc(a.Object.Spec.Tools, func(t v1alpha1.AgentTool) bool { return t.Name == tool && len(t.Include)+len(t.Exclude) > 0 }) {
			return true
		}
	}
	return false
}

// policyTool is a materialised Tool as rules see it.
func policyTool(t *v1alpha1.Tool) policy.Tool {
	p := policy.Tool{
		Name: CallName(t), Source: t.Spec.Source.Kind(), Builtin: builtin.Named(&t.Spec.Source),
		Risk: t.Spec.Risk, Effects: t.Spec.Effects, Category: t.Spec.Category, Several: t.Spec.Source.Several(),
	}
	if t.Spec.Parameters != nil {
		p.Schema = t.Spec.Parameters.Raw
	}
	if u := builtin.Server(&t.Spec); u != nil {
		p.Server = u.String()
	}
	return p
}

// Compiled returns the compiled policies of the plan, in the order of Policies.
// A plan that was read from JSON, or whose tools share call names with others
// of the manifests, is compiled here.
func (p *Plan) Compiled() []*policy.Compiled {
	if p.compiled != nil {
		return p.compiled
	}
	return p.Compile(p.Policies)
}

// Compile compiles other policies for the plan's tools. A policy that does not
// compile denies.
func (p *Plan) Compile(policies []*v1alpha1.Policy) []*policy.Compiled {
	tools := make([]policy.Tool, 0, len(p.Tools))
	for _, t := range p.Tools {
		known := policyTool(t.Tool)
		if len(t.Include)+len(t.Exclude) > 0 {
			known.Several, known.Schema = true, nil
		}
		tools = append(tools, known)
	}
	// Rules about read apply to every tool that reads, and those about edit to all that
	// programs change, and so for an agent without them.
	for _, builtin := range []string{"read", "edit"} {
		if t, err := shipped(builtin); err == nil && !slices.ContainsFunc(tools, func(known policy.Tool) bool { return known.Name == t.Name }) {
			materialise(t)
			tools = append(tools, policyTool(t))
		}
	}
	// What an agent checks its files with is judged as bash.
	if bash, err := shipped("bash"); err == nil && len(p.Agent.Spec.Diagnostics) > 0 && !slices.ContainsFunc(tools, func(t policy.Tool) bool { return t.Name == bash.Name }) {
		materialise(bash)
		tools = append(tools, policyTool(bash))
	}
	all := make([]*policy.Compiled, 0, len(policies))
	for _, pol := range policies {
		// An expression that does not compile denies; admission has reported it.
		c, _ := policy.Compile(pol, tools)
		all = append(all, c)
	}
	return all
}
