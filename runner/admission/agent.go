package admission

import (
	"fmt"
	"path"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/policies"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

func (a *admitter) agent(d *manifest.Document, ag *v1alpha1.Agent) {
	if !a.opts.Modelless {
		a.reference(d, "spec.modelRef.name", v1alpha1.KindModel, ag.Spec.ModelRef.Name, names(a.catalog.Models))
	}
	a.agentTools(d, ag)
	a.suppliers(d, ag)
	known := slices.Concat(names(a.catalog.Policies), policies.Names())
	for i, ref := range ag.Spec.PolicyRefs {
		at := manifest.Index("spec.policyRefs", i)
		a.reference(d, at+".name", v1alpha1.KindPolicy, ref.Name, known)
		for j := range i {
			if ref.Name != "" && ag.Spec.PolicyRefs[j].Name == ref.Name {
				a.add(d.Warnf(at+".name", "policy %q is listed twice", ref.Name))
				break
			}
		}
	}
	a.agentSkills(d, ag)
	a.subagents(d, ag)
	a.diagnostics(d, ag)
	a.publications(d, ag)
	if ag.Spec.Inputs != nil {
		a.schema(d, "spec.inputs.schema", ag.Spec.Inputs.Schema.Raw, true)
	}
	if ag.Spec.Output != nil {
		a.schema(d, "spec.output.schema", ag.Spec.Output.Schema.Raw, false)
	}
	a.positive(d, "spec.limits.timeout", ag.Spec.Limits.Timeout.Duration)
	a.positive(d, "spec.approvals.timeout", ag.Spec.Approvals.Timeout.Duration)
	a.costs(d, ag)
	a.context(d, ag)
}

// agentTools resolves the names of an agent's tools and looks for two tools
// that a model would call by one name.
func (a *admitter) agentTools(d *manifest.Document, ag *v1alpha1.Agent) {
	known := append(names(a.catalog.Tools), builtin.Names()...)
	calls := map[string]string{}
	for i, t := range ag.Spec.Tools {
		at := manifest.Index("spec.tools", i)
		a.globs(d, at+".include", t.Include)
		a.globs(d, at+".exclude", t.Exclude)
		if !a.reference(d, at+".name", v1alpha1.KindTool, t.Name, known) || t.Name == "" {
			continue
		}
		call := t.Name
		e, declared := a.catalog.Tools[t.Name]
		if b, ok := builtin.Lookup(t.Name); ok && !declared && b.Endpoint != "" {
			a.add(d.Errorf(at+".name", "the built-in tool %s needs a Tool that names its server", t.Name).
				With(fmt.Sprintf("write a Tool with source: {builtin: {name: %s}}, env: [{name: %s, value: \"https://...\"}] and network: {mode: Proxy, allow: [...]}", t.Name, b.Endpoint)))
			continue
		}
		if declared {
			call = CallName(e.Object)
		}
		if len(t.Include)+len(t.Exclude) > 0 && !(declared && a.catalog.several(e.Object)) {
			field := ".include"
			if len(t.Include) == 0 {
				field = ".exclude"
			}
			a.add(d.Errorf(at+field, "tool %q has one function: there is nothing to choose from", t.Name).
				With("remove it; a Tool with source.mcp, or one of a plugin without tool and parameters, provides several"))
		}
		if other, taken := calls[call]; taken && other != t.Name {
			a.add(d.Errorf(at+".name", "tools %q and %q have one call name, %q", other, t.Name, call).
				With("give one of them another spec.callName"))
		}
		calls[call] = t.Name
	}
}

// several reports whether an agent can choose among the functions of a Tool: an MCP server
// always provides several, a program with the tool protocol if its Tool names none of them.
func (c *Catalog) several(t *v1alpha1.Tool) bool {
	facts, _ := c.kinds.Facts(&t.Spec) // what is wrong is found with the Tool
	return t.Spec.Source.Several() || facts.Describes && facts.Function == "" && facts.Shipped == "" && t.Spec.Parameters == nil
}

// globs checks patterns over the names of functions.
func (a *admitter) globs(d *manifest.Document, at string, patterns []string) {
	for i, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			a.add(d.Errorf(manifest.Index(at, i), "%q is not a glob: %v", clip(p), err))
		}
	}
}

// costs warns about a cap that cannot be watched.
func (a *admitter) costs(d *manifest.Document, ag *v1alpha1.Agent) {
	if ag.Spec.Limits.MaxCost == "" {
		return
	}
	m, ok := a.catalog.Models[ag.Spec.ModelRef.Name]
	if !ok {
		return
	}
	if _, known := a.opts.Models.Price(&m.Object.Spec); !known {
		a.add(d.Warnf("spec.limits.maxCost", "model %q has no pricing, so its cost is unknown: a run ends at once with BudgetExceeded", m.Object.Name).
			With("write spec.pricing in the Model"))
	}
	for _, ref := range m.Object.Spec.Fallbacks {
		if f, ok := a.catalog.Models[ref.Name]; ok {
			if _, known := a.opts.Models.Price(&f.Object.Spec); !known {
				a.add(d.Warnf("spec.limits.maxCost", "fallback %q of model %q has no pricing: it is not turned to while there is a limit of the cost", ref.Name, m.Object.Name).
					With("write spec.pricing in the Model"))
			}
		}
	}
}

// context looks at what is done about a conversation that grows too long.
func (a *admitter) context(d *manifest.Document, ag *v1alpha1.Agent) {
	c := &ag.Spec.Context
	if c.ModelRef != nil {
		a.reference(d, "spec.context.modelRef.name", v1alpha1.KindModel, c.ModelRef.Name, names(a.catalog.Models))
	}
	m, ok := a.catalog.Models[ag.Spec.ModelRef.Name]
	if !ok || m.Object.Spec.ContextWindow == 0 || c.CompactAtPercent == nil || c.KeepRecentTokens == nil || *c.CompactAtPercent == 0 {
		return
	}
	const bytesPerToken, byDefault = 4, 15000
	fixed, keep := int64(len(ag.Spec.Instructions))/bytesPerToken, *c.KeepRecentTokens
	trigger := m.Object.Spec.ContextWindow * int64(*c.CompactAtPercent) / 100
	where := fmt.Sprintf("the conversation is shortened at %d (%d %% of the %d that model %q holds)",
		trigger, *c.CompactAtPercent, m.Object.Spec.ContextWindow, m.Object.Name)
	switch {
	case fixed >= trigger:
		a.add(d.Warnf("spec.instructions", "they are about %d tokens, and %s: there is no room for it", fixed, where).
			With("write less, or raise spec.contextWindow of the Model if it holds more"))
	case fixed+keep >= trigger && keep != byDefault: // keepRecentTokens by default: it is lowered without a warning
		a.add(d.Warnf("spec.context.keepRecentTokens", "with the instructions they are about %d tokens, and %s: less of them can stay", fixed+keep, where).
			With("lower it, or raise spec.contextWindow of the Model if it holds more"))
	}
}

// positive refuses a duration of nothing. The pattern of durations lets "0s" pass.
func (a *admitter) positive(d *manifest.Document, at string, v time.Duration) {
	if v <= 0 && !d.Faulty(at) {
		a.add(d.Errorf(at, "%s is not more than 0", v))
	}
}
