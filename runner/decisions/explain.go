package decisions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/runs"
)

// Explanation is a decision of a run, and what led to it.
type Explanation struct {
	Run   string    `json:"run"`
	Call  string    `json:"call"`
	Agent string    `json:"agent"`
	Tool  string    `json:"tool"`
	Time  time.Time `json:"time"`
	Step  int       `json:"step"`
	// Args as the model wrote them, without secrets.
	Args json.RawMessage `json:"args"`

	// Decision, Rule, Policy, File, Line and Reason are those of the run.
	Decision message.Action `json:"decision"`
	Rule     string         `json:"rule"`
	Policy   string         `json:"policy"`
	File     string         `json:"file"`
	Line     int            `json:"line"`
	Reason   string         `json:"reason"`
	Risk     string         `json:"risk"`
	// Again is what the second evaluation decides. It can differ where the first
	// one has read files, or a secret that the journal does not hold.
	Again message.Action `json:"again"`
	// Candidates are all that was asked, and what each said by itself.
	Candidates []Candidate `json:"candidates"`
	// Facts about the call, determined again.
	Facts json.RawMessage `json:"facts,omitempty"`
}

// Candidate is a rule, an entry of a list or a default that could have decided.
type Candidate struct {
	Policy string          `json:"policy"`
	Rule   string          `json:"rule"`
	File   string          `json:"file"`
	Line   int             `json:"line"`
	Action v1alpha1.Action `json:"action"`
	Mode   string          `json:"mode"`
	// When is the condition, Truth what it came to: true, false, unknown or error.
	When  string `json:"when,omitempty"`
	Truth string `json:"truth"`
	Error string `json:"error,omitempty"`
	// Decisive is set when the decision came from here.
	Decisive bool `json:"decisive"`
	// Values are the parts of the condition and what they were.
	Values []expr.Step `json:"values,omitempty"`
}

// Explain judges a call of a run again, from its journal alone, and returns the
// result of each rule. The run is one of a state folder, by its id, with or without run/, a
// unique beginning of one, or @latest. The call is given by its id, by the beginning of exactly one, or by
// its number in the run; "" is the only call, or the last one that was not allowed. It runs
// and writes nothing. An error is a *reason.UsageError, or means that the journal cannot
// be read.
func Explain(ctx context.Context, state, ref, call string) (*Explanation, error) {
	found, err := journal.FindRun(state, ref)
	if err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	v := &view.Run{}
	if err := runs.Fold(ctx, found, v); err != nil {
		return nil, err
	}
	id, err := chooseCall(v, call)
	if err != nil {
		return nil, err
	}
	for d, err := range read(ctx, found) {
		if err != nil {
			return nil, err
		}
		if d.call.CallID != id {
			continue
		}
		p, err := d.plan(found)
		if err != nil {
			return nil, err
		}
		return d.explain(ctx, p, found)
	}
	return nil, reason.Usagef("the journal of run %s holds no decision about call %s", found.ID, id)
}

// chooseCall finds the call that is meant.
func chooseCall(v *view.Run, ref string) (string, error) {
	var judged []*message.ToolPart
	for _, m := range v.Messages {
		for _, c := range m.Calls() {
			if c.Decision != nil {
				judged = append(judged, c)
			}
		}
	}
	if len(judged) == 0 {
		return "", reason.Usagef("no call of run %s was judged", v.ID)
	}
	if ref == "" {
		for _, c := range slices.Backward(judged) {
			if c.Decision.Action != message.Allow {
				return c.CallID, nil
			}
		}
		return judged[len(judged)-1].CallID, nil
	}
	var fits []string
	for _, c := range judged {
		if c.CallID == ref {
			return ref, nil
		}
		if strings.HasPrefix(c.CallID, ref) {
			fits = append(fits, c.CallID)
		}
	}
	if n, err := strconv.Atoi(ref); err == nil && len(fits) == 0 && n >= 1 && n <= len(judged) {
		return judged[n-1].CallID, nil
	}
	if len(fits) == 1 {
		return fits[0], nil
	}
	var known []string
	for _, c := range judged[:min(len(judged), 20)] {
		known = append(known, c.CallID)
	}
	if len(fits) > 1 {
		known = fits
	}
	return "", reason.Usagef("run %s has no one call %q that was judged", v.ID, ref).WithHint("name one of " + strings.Join(known, ", ") + ", or its number")
}

func (d *decision) explain(ctx context.Context, p *plan.Plan, found journal.Found) (*Explanation, error) {
	engine := policy.NewEngine(p.Rules, d.context(p))
	call := message.ToolCall{ID: d.call.CallID, Tool: d.call.Tool, Args: d.args(p), Step: d.step, Again: true}
	again, err := engine.Decide(ctx, call)
	if err != nil {
		return nil, err
	}
	candidates, err := engine.Candidates(ctx, p.AllRules(), call)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", call.ID, err)
	}
	from := engine.Origin(ctx, p.AllRules(), call, d.made)
	x := &Explanation{
		Run: found.ID, Call: call.ID, Agent: p.Agent.Name, Tool: call.Tool, Time: d.at.Time, Step: d.step, Args: call.Args,
		Decision: d.made.Action, Rule: from.Rule, Policy: from.Policy, Reason: d.made.Message, Risk: d.made.Risk,
		Again: again.Action, Facts: again.Facts, Candidates: []Candidate{},
	}
	if d.made.Action == message.Ask && (from.Rule == loopRule || from.Rule == planRule) && again.Action != message.Deny {
		x.Again = message.Ask // the guard or the plan asks, which no policy sees
	}
	x.File, x.Line = p.Locate(from)
	for _, c := range candidates {
		k := Candidate{
			Policy: c.Policy, Rule: c.Rule, Action: c.Action, Mode: string(c.Mode), When: c.When, Truth: c.Truth, Error: c.Error,
			Values: c.Steps, Decisive: c.Origin == from,
		}
		k.File, k.Line = p.Locate(c.Origin)
		x.Candidates = append(x.Candidates, k)
	}
	slices.SortStableFunc(x.Candidates, func(a, b Candidate) int { return rankOf(a) - rankOf(b) })
	return x, nil
}

// loopRule is what asks about a call that repeats, as the loop says it.
const loopRule = "default/loopGuard"

// planRule is what asks about a step with approval: true.
const planRule = "default/planApproval"

// rankOf puts what decided first, then what agreed.
func rankOf(c Candidate) int {
	switch {
	case c.Decisive:
		return 0
	case c.Truth == "true":
		return 1
	}
	return 2
}
