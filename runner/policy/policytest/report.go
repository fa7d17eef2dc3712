package policytest

import (
	"encoding/json"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
)

// Report is what the cases of policies have shown.
type Report struct {
	Cases  int `json:"cases"`
	Failed int `json:"failed"`
	// Mutants that were tried and Survivors that no case noticed.
	Mutants   int            `json:"mutants"`
	Survivors int            `json:"survivors"`
	Policies  []PolicyReport `json:"policies"`
}

func (r *Report) add(p PolicyReport) {
	r.Policies = append(r.Policies, p)
	r.Cases += len(p.Cases)
	r.Failed += p.failed()
	if m := p.Mutation; m != nil {
		r.Mutants += m.Mutants
		r.Survivors += len(m.Survivors)
	}
}

// PolicyReport is what the cases of one policy have shown.
type PolicyReport struct {
	Name     string            `json:"name"`
	Position manifest.Position `json:"position"`
	Cases    []CaseResult      `json:"cases"`
	// Coverage is nil when only some cases were judged, or none.
	Coverage *Coverage `json:"coverage"`
	// Mutation is nil when it was not asked for, or cases fail.
	Mutation *Mutation `json:"mutation"`
}

func (p *PolicyReport) failed() (n int) {
	for i := range p.Cases {
		if !p.Cases[i].Pass {
			n++
		}
	}
	return n
}

// CaseResult is how one case went.
type CaseResult struct {
	Name     string            `json:"name"`
	Position manifest.Position `json:"position"`
	Pass     bool              `json:"pass"`
	Agent    string            `json:"agent,omitempty"`
	Tool     string            `json:"tool"`
	Args     json.RawMessage   `json:"args"`
	Want     Verdict           `json:"want"`
	// Got is nil when the call could not be decided; Problem is the reason.
	Got     *Verdict `json:"got"`
	Problem string   `json:"problem,omitempty"`
	// RulePosition is the position of the rule that decided.
	RulePosition   *manifest.Position `json:"rulePosition,omitempty"`
	DurationMicros int64              `json:"durationMicros"`
}

// Verdict is a decision about a call or its result.
type Verdict struct {
	Action  v1alpha1.Action `json:"action"`
	Rule    string          `json:"rule,omitempty"`
	Message string          `json:"message,omitempty"`
	// Text of a result, as the model would read it.
	Text *string `json:"text,omitempty"`
}

// Coverage lists the parts of a policy that no case has exercised.
type Coverage struct {
	Rules       Share `json:"rules"`
	Permissions Share `json:"permissions"`
}

// Complete reports whether every part was exercised.
func (c *Coverage) Complete() bool {
	return c.Rules.Covered == c.Rules.Total && c.Permissions.Covered == c.Permissions.Total
}

// Share is how many parts of one sort were seen.
type Share struct {
	Covered int   `json:"covered"`
	Total   int   `json:"total"`
	Missing []Gap `json:"missing"`
}

// Gap is something that no case does.
type Gap struct {
	// Name of the rule, or permission and pattern of the entry.
	Name string `json:"name"`
	// Never is what did not happen: true, false, matched, unmatched or won.
	Never    string            `json:"never"`
	Position manifest.Position `json:"position"`
}

// Mutation lists the mistakes in a policy that no case notices.
type Mutation struct {
	Mutants int `json:"mutants"`
	Killed  int `json:"killed"`
	// Score is the share that was noticed, in percent.
	Score     float64    `json:"score"`
	Survivors []Survivor `json:"survivors"`
}

// Survivor is a mistake that no case notices.
type Survivor struct {
	Change   string            `json:"change"`
	Path     string            `json:"path"`
	Position manifest.Position `json:"position"`
}

// place finds the part of the policy that decided, as policy/rule.
func (b *bench) place(rule string) *manifest.Position {
	p := b.subject.Policy
	name, own := strings.CutPrefix(rule, p.Name+"/")
	if !own {
		return nil
	}
	path := "spec." + name // permissions and default
	for i := range p.Spec.Rules {
		if p.Spec.Rules[i].Name == name {
			path = fmt.Sprintf("spec.rules[%d]", i)
		}
	}
	at := b.subject.Where(path)
	return &at
}
