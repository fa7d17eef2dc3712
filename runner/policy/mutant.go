package policy

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Mutant is a policy with one mistake that its cases should notice.
type Mutant struct {
	// Path of what was changed, for example spec.rules[2].
	Path string
	// Change in words, for example "rule stay-inside dropped".
	Change string
	Policy *Compiled
	// rule is the rule that was changed; nil for the list and the default.
	rule *rule
}

// Touches reports whether the decision on calls of a tool can differ.
func (m *Mutant) Touches(t *Tool) bool {
	return m.rule == nil || slices.ContainsFunc(m.Policy.origin.rules[t.compiledAs()], func(r *rule) bool { return r.order == m.rule.order })
}

// Enforced returns the policy as it would decide if its decisions counted.
func (c *Compiled) Enforced() *Compiled {
	out, spec := *c, *c.spec
	spec.Mode = v1alpha1.PolicyEnforce
	out.spec = &spec
	return &out
}

// Mutants are the policy with each rule dropped, with each action flipped, with
// each condition negated, and with each entry of the list dropped and flipped.
// Nothing is compiled again.
func (c *Compiled) Mutants() iter.Seq[Mutant] {
	return func(yield func(Mutant) bool) {
		for i := range c.spec.Rules {
			if !c.mutateRule(i, yield) {
				return
			}
		}
		for i := range c.entries {
			if !c.mutateEntry(i, yield) {
				return
			}
		}
		if to := flipped(v1alpha1.Action(c.spec.Default)); c.spec.Default != "" {
			out, spec := *c, *c.spec
			spec.Default = v1alpha1.DefaultAction(to)
			out.spec, out.origin = &spec, c
			yield(Mutant{Path: "spec.default", Change: fmt.Sprintf("default %s instead of %s", to, c.spec.Default), Policy: &out})
		}
	}
}

func (c *Compiled) mutateRule(i int, yield func(Mutant) bool) bool {
	spec := &c.spec.Rules[i]
	path, to := fmt.Sprintf("spec.rules[%d]", i), flipped(spec.Action)
	flip := *spec
	flip.Action = to
	changes := []struct {
		path, change string
		to           func(*rule) *rule
	}{
		{path, fmt.Sprintf("rule %s dropped", spec.Name), func(*rule) *rule { return nil }},
		{path + ".action", fmt.Sprintf("rule %s: %s instead of %s", spec.Name, to, spec.Action), func(r *rule) *rule {
			r.spec = &flip
			return r
		}},
		{path + ".when", fmt.Sprintf("rule %s: when negated", spec.Name), func(r *rule) *rule {
			r.negated = true
			return r
		}},
	}
	if spec.When == "" { // negated it would be dropped
		changes = changes[:2]
	}
	for _, ch := range changes {
		if !yield(Mutant{Path: ch.path, Change: ch.change, Policy: c.with(i, ch.to), rule: &rule{order: i}}) {
			return false
		}
	}
	return true
}

// with returns the policy with one of its rules replaced, for every tool.
func (c *Compiled) with(i int, change func(*rule) *rule) *Compiled {
	out := *c
	out.origin, out.rules = c, maps.Clone(c.rules)
	for tool, rules := range c.rules {
		at := slices.IndexFunc(rules, func(r *rule) bool { return r.order == i })
		if at < 0 {
			continue
		}
		rules = slices.Clone(rules)
		own := *rules[at]
		if r := change(&own); r != nil {
			rules[at] = r
		} else {
			rules = slices.Delete(rules, at, at+1)
		}
		out.rules[tool] = rules
	}
	return &out
}

func (c *Compiled) mutateEntry(i int, yield func(Mutant) bool) bool {
	path, e := fmt.Sprintf("spec.permissions[%d]", i), c.entries[i]
	what := fmt.Sprintf("permission %s %q", e.permission, e.pattern)
	dropped := *c
	dropped.origin, dropped.entries = c, slices.Delete(slices.Clone(c.entries), i, i+1)
	if !yield(Mutant{Path: path, Change: what + " dropped", Policy: &dropped}) {
		return false
	}
	other := *c
	other.origin, other.entries = c, slices.Clone(c.entries)
	to := flipped(e.action)
	other.entries[i].action = to
	return yield(Mutant{Path: path + ".action", Change: fmt.Sprintf("%s: %s instead of %s", what, to, e.action), Policy: &other})
}

// flipped is the mistake an author makes: what is refused is let through, what
// is let through is refused.
func flipped(a v1alpha1.Action) v1alpha1.Action {
	switch a {
	case v1alpha1.ActionDeny, v1alpha1.ActionAsk, v1alpha1.ActionRedact:
		return v1alpha1.ActionAllow
	case v1alpha1.ActionAllow:
	}
	return v1alpha1.ActionDeny
}
