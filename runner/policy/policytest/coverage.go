package policytest

import (
	"context"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
)

// Seen is what the rules and the entries of one policy have done so far. The zero value has
// seen nothing.
type Seen struct {
	rules []outcomes
	won   []bool
}

// outcomes are the values that a rule has had.
type outcomes struct{ yes, no bool }

// Note adds what the policy said about a call, or about a result.
func (s *Seen) Note(spec *v1alpha1.PolicySpec, t policy.RuleTrace, result bool) {
	s.grow(spec)
	asked := make([]bool, len(s.rules))
	for _, a := range t.Answers {
		asked[a.Rule] = true
		if r := &s.rules[a.Rule]; a.Err == nil {
			r.yes = r.yes || a.Truth == expr.True
			r.no = r.no || a.Truth == expr.False
		}
	}
	for i := range s.rules {
		// Without a condition a rule is false where its match does not select.
		if spec.Rules[i].When == "" && !asked[i] && result == (spec.Rules[i].On == v1alpha1.OnResult) {
			s.rules[i].no = true
		}
	}
	for _, i := range t.Entries {
		s.won[i] = true
	}
}

func (s *Seen) grow(spec *v1alpha1.PolicySpec) {
	if s.rules == nil {
		s.rules, s.won = make([]outcomes, len(spec.Rules)), make([]bool, len(spec.Permissions))
	}
}

// Coverage lists what has not been seen. Where returns the position of a field of the policy.
func (s *Seen) Coverage(spec *v1alpha1.PolicySpec, where func(path string) manifest.Position) Coverage {
	s.grow(spec)
	return Coverage{Rules: s.ruleShare(spec, where), Permissions: s.permissionShare(spec, where)}
}

func (s *Seen) ruleShare(spec *v1alpha1.PolicySpec, where func(path string) manifest.Position) Share {
	share := Share{Total: len(s.rules), Missing: []Gap{}}
	for i, seen := range s.rules {
		r := &spec.Rules[i]
		yes, no := "true", "false"
		if r.When == "" {
			yes, no = "matched", "unmatched"
			seen.no = seen.no || matchesAll(&r.Match) // it cannot be otherwise
		}
		if seen.yes && seen.no {
			share.Covered++
			continue
		}
		at := where(fmt.Sprintf("spec.rules[%d]", i))
		if !seen.yes {
			share.Missing = append(share.Missing, Gap{Name: r.Name, Never: yes, Position: at})
		}
		if !seen.no {
			share.Missing = append(share.Missing, Gap{Name: r.Name, Never: no, Position: at})
		}
	}
	return share
}

func matchesAll(m *v1alpha1.Match) bool {
	return len(m.Tools)+len(m.Builtins)+len(m.Categories)+len(m.Effects)+len(m.Risks)+len(m.Agents) == 0
}

func (s *Seen) permissionShare(spec *v1alpha1.PolicySpec, where func(path string) manifest.Position) Share {
	share := Share{Total: len(s.won), Missing: []Gap{}}
	for i, w := range s.won {
		if w {
			share.Covered++
			continue
		}
		e := &spec.Permissions[i]
		share.Missing = append(share.Missing, Gap{
			Name: fmt.Sprintf("%s %q", e.Permission, e.Pattern), Never: "won", Position: where(fmt.Sprintf("spec.permissions[%d]", i)),
		})
	}
	return share
}

// coverage lists which rules were true and false in the cases, and which entries of the
// list decided.
func (b *bench) coverage() Coverage {
	spec := &b.subject.Policy.Spec
	var seen Seen
	for _, t := range b.trials {
		if t.problem == "" {
			seen.Note(spec, t.trace, t.result != nil)
		}
	}
	return seen.Coverage(spec, b.subject.Where)
}

// mutate tries every mutant of the policy until a case notices it.
func (b *bench) mutate(ctx context.Context) Mutation {
	mutants := slices.Collect(b.judges.policy.Mutants())
	noticed := make([]bool, len(mutants))
	parallel(ctx, len(mutants), func(i int) {
		m := &mutants[i]
		j := newJudges(m.Policy)
		noticed[i] = slices.ContainsFunc(b.trials, func(t *trial) bool {
			return t.problem == "" && m.Touches(&t.about.Tools[0]) && !t.meets(b.verdict(ctx, j, t))
		})
	})
	out := Mutation{Mutants: len(mutants), Score: 100, Survivors: []Survivor{}}
	for i, m := range mutants {
		if noticed[i] {
			out.Killed++
			continue
		}
		out.Survivors = append(out.Survivors, Survivor{Change: m.Change, Path: m.Path, Position: b.subject.Where(m.Path)})
	}
	if out.Mutants > 0 {
		out.Score = 100 * float64(out.Killed) / float64(out.Mutants)
	}
	return out
}
