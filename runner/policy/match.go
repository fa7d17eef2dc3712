package policy

import (
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
)

// selects reports whether a rule can apply to a tool. The agent is checked when the engine
// is built.
func selects(m *v1alpha1.Match, t *Tool) bool {
	return anyGlob(m.Tools, t.Name) && anyGlob(m.Builtins, t.Builtin) &&
		(len(m.Categories) == 0 || slices.Contains(m.Categories, t.Category)) &&
		(len(m.Risks) == 0 || slices.Contains(m.Risks, t.risk())) &&
		(len(m.Effects) == 0 || slices.ContainsFunc(m.Effects, func(e v1alpha1.Effect) bool { return slices.Contains(t.Effects, e) }))
}

// canSelect reports whether a rule can apply to a tool or, for one whose functions are not
// known yet, to one of its functions. What a function is like is checked when the engine is
// built.
func canSelect(m *v1alpha1.Match, t *Tool) bool {
	if !t.Several {
		return selects(m, t)
	}
	return anyGlob(m.Builtins, t.Builtin) && (len(m.Tools) == 0 || slices.ContainsFunc(m.Tools, func(pattern string) bool {
		fixed := pattern
		if at := strings.IndexAny(pattern, "*?"); at >= 0 {
			fixed = pattern[:at]
		}
		family := t.Name + "_"
		return strings.HasPrefix(fixed, family) || fixed != pattern && strings.HasPrefix(family, fixed)
	}))
}

// MatchesAgent reports whether a rule with this match applies to calls of an agent.
func MatchesAgent(m *v1alpha1.Match, agent string) bool { return anyGlob(m.Agents, agent) }

func anyGlob(patterns []string, s string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return glob(p, s) })
}

// glob matches with * for any run of characters, / included, and ? for one. It
// takes time in proportion to len(pattern) * len(s) at worst.
func glob(pattern, s string) bool { return expr.Glob(pattern, s) }
