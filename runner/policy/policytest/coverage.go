package policytest

import (
	"context"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
)

// What a rule has been seen to do.
type seen struct{ yes, no bool }

// coverage lists which rules were true and false in the cases, and which entries of the
// list decided.
func (b *bench) coverage() Coverage {
	spec := &b.subject.Policy.Spec
	rules, won := make([]seen, len(spec.Rules)), make([]bool, len(spec.Permissions))
	for _, t := range b.trials {
		if t.problem != "" {
			continue
		}
		asked := make([]bool, len(rules))
		for _, a := range t.trace.Answers {
			asked[a.Rule] = true
			if a.Err == nil {
				rules[a.Rule].yes = rules[a.Rule].yes || a.Truth == expr.True
				rules[a.Rule].no = rules[a.Rule].no || a.Truth == expr.False
			}
		}
		for i := range rules {
			// Without a condition a rule is false where its match does not select.
			if spec.Rules[i].When == "" && !asked[i] && (t.result != nil) == (spec.Rules[i].On == v1alpha1.OnResult) {
				rules[i].no = true
			}
		}
		for _, i := range t.trace.Entries {
			won[i] = true
		}
	}
	return Coverage{Rules: b.ruleShare(rules), Permissions: b.permissionShare(won)}
}

func (b *bench) ruleShare(rules []seen) Share {
	share := Share{Total: len(rules), Missing: []Gap{}}
	for i, s := range rules {
		r := &b.subject.Policy.Spec.Rules[i]
		yes, no := "true", "false"
		if r.When == "" {
			yes, no = "matched", "unmatched"
			s.no = s.no || matchesAll(&r.Match) // it cannot be otherwise
		}
		if s.yes && s.no {
			share.Covered++
			continue
		}
		at := b.subject.Where(fmt.Sprintf("spec.rules[%d]", i))
		if !s.yes {
			share.Missing = append(share.Missing, Gap{Name: r.Name, Never: yes, Position: at})
		}
		if !s.no {
			share.Missing = append(share.Missing, Gap{Name: r.Name, Never: no, Position: at})
		}
	}
	return share
}

func matchesAll(m *v1alpha1.Match) bool {
	return len(m.Tools)+len(m.Builtins)+len(m.Categories)+len(m.Effects)+len(m.Risks)+len(m.Agents) == 0
}

func (b *bench) permissionShare(won []bool) Share {
	share := Share{Total: len(won), Missing: []Gap{}}
	for i, w := range won {
		if w {
			share.Covered++
			continue
		}
		e := &b.subject.Policy.Spec.Permissions[i]
		share.Missing = append(share.Missing, Gap{
			Name: fmt.Sprintf("%s %q", e.Permission, e.Pattern), Never: "won", Position: b.subject.Where(fmt.Sprintf("spec.permissions[%d]", i)),
		})
	}
	return share
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
