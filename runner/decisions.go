package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool"
)

// AccessOptions describe a call that is not executed.
type AccessOptions struct {
	// Paths are files, folders or "-" (Stdin). Required.
	Paths []string
	Stdin io.Reader
	// Agent by name; may be "" where the manifests hold one.
	Agent string
	// Above are the agents that have started the agent, that of the run first; Policies
	// narrow the run, as those of RunOptions.
	Above, Policies []string
	// WithoutRepository is that of RunOptions.
	WithoutRepository bool
	// Workspace is the folder whose files the call would see; "" is that of the
	// manifests, else the current folder.
	Workspace string
	// Tool by call name, and its arguments; none are {}.
	Tool string
	Args json.RawMessage
}

// Access is what the policies decide about a call.
type Access = plan.Access

// Reached is an agent that a call can start.
type Reached = plan.Reached

// Blocker is one thing that would have to be different for a call to be allowed.
type Blocker = plan.Blocker

// CanI judges a call as a run would, without a run: nothing is started, asked or
// written. Its errors are an *InvalidError or a *reason.UsageError.
func CanI(ctx context.Context, o AccessOptions) (*Access, error) {
	return plan.Judge(ctx, plan.Options{Paths: o.Paths, Stdin: o.Stdin, Agent: o.Agent, Above: o.Above, RunPolicies: o.Policies, WithoutRepository: o.WithoutRepository, Workspace: o.Workspace, Images: images("", true), Registries: registries()}, o.Tool, o.Args)
}

// ExplainOptions name a decision.
type ExplainOptions struct {
	// State is the folder that holds runs; see statedir.Find.
	State string
	// Ref is RUN/CALL: the run as Resume takes it, and a call by its id, by the
	// beginning of exactly one, or by its number in the run, counted from 1. RUN
	// alone is the only call, or the last one that was not allowed.
	Ref string
}

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
// result of each rule. It runs and writes nothing. An error is a
// *reason.UsageError, or means that the journal cannot be read.
func Explain(ctx context.Context, o ExplainOptions) (*Explanation, error) {
	state, err := statedir.Find(o.State)
	if err != nil {
		return nil, err
	}
	run, call, _ := strings.Cut(strings.TrimPrefix(o.Ref, "run/"), "/")
	found, err := journal.FindRun(state, run)
	if err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	past, err := readDecisions(ctx, found, call)
	if err != nil {
		return nil, err
	}
	r, err := plan.ReadRecord(found.Dir, past.view)
	if err != nil {
		return nil, err
	}
	p, err := r.Restore(past.view, plan.Options{State: state, Registries: registries()})
	if err == nil {
		p.Definitions, err = p.Called()
	}
	if err != nil {
		return nil, err
	}
	return past.explain(ctx, p, found)
}

// decision is one decision of a run, and what had happened before it.
type decision struct {
	view    *view.Run
	call    *message.ToolPart
	step    int
	at      event.Event
	made    message.Decision
	calls   map[string]int
	denials int
}

// readDecisions reads a journal up to the decision that is meant.
func readDecisions(ctx context.Context, found journal.Found, ref string) (*decision, error) {
	v := &view.Run{}
	if err := runs.Fold(ctx, found, v); err != nil {
		return nil, err
	}
	id, err := chooseCall(v, ref)
	if err != nil {
		return nil, err
	}
	// A call was judged again if something had changed by the time it ran; the
	// last decision counts.
	last := int64(0)
	for e, err := range journal.Read(ctx, found.Dir, 0) {
		if err != nil {
			return nil, fmt.Errorf("read the journal of run %s: %w", found.ID, err)
		}
		if e.Type() == event.TypePolicyDecision && e.Call == id {
			last = e.Seq
		}
	}
	d := &decision{view: &view.Run{}, calls: map[string]int{}}
	counted := map[string]bool{}
	for e, err := range journal.Read(ctx, found.Dir, 0) {
		if err != nil {
			return nil, fmt.Errorf("read the journal of run %s: %w", found.ID, err)
		}
		_ = d.view.Apply(e) // an event that the rules forbid changes nothing
		made, ok := e.Data.(event.PolicyDecision)
		if !ok {
			continue
		}
		c := d.view.Call(e.Call)
		if c == nil {
			continue
		}
		if e.Seq == last {
			d.call, d.at, d.made, d.step = c, e, made.Decision, d.view.Step(id)
			return d, nil
		}
		if e.Call == id || counted[e.Call] {
			continue
		}
		counted[e.Call] = true
		d.calls[c.Tool]++
		if made.Action == message.Deny {
			d.denials++
		}
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

// context is what the decision depended on.
func (d *decision) context(p *plan.Plan) policy.Context {
	c := p.PolicyContext(p.Definitions, v1alpha1.IsolationLevel(d.view.Started.Isolation))
	c.Run.Name, c.Run.User = d.view.ID, d.view.Started.User
	c.Run.Inputs, _ = p.InputValues() // they come from a journal, and so are JSON
	c.Workspace = policy.Workspace{Root: d.view.Started.Workspace.Dir, Source: d.view.Started.Workspace.Source}
	c.Now = func() time.Time { return d.at.Time }
	c.Calls, c.Denials = d.calls, d.denials
	spent := d.view
	c.Budget = func() policy.Budget { return p.Budget(usedBy(spent, d.at.Time)) }
	c.Approvals = func() policy.Approvals { return policy.Approvals{Granted: spent.Granted, Refused: spent.Refused} }
	return c
}

// args are the judged arguments: those after the schema.
func (d *decision) args(p *plan.Plan) json.RawMessage {
	raw := d.call.Input
	if len(raw) == 0 {
		raw = json.RawMessage(d.call.Raw)
	}
	at := slices.IndexFunc(p.Definitions, func(t tool.Definition) bool { return t.Name == d.call.Tool })
	if at < 0 || len(p.Definitions[at].Parameters) == 0 {
		return raw
	}
	if schema, err := tool.NewSchema(p.Definitions[at].Parameters); err == nil {
		if checked, err := schema.Check(string(raw)); err == nil {
			return checked
		}
	}
	return raw
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
