package decisions

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/policies"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/image/artifact"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/plan"
	"agentctl.dev/agentctl/runner/policy"
)

// ReplayOptions name a run, and the policies that judge its calls again.
type ReplayOptions struct {
	// State is the folder that holds runs, Ref the run in it as Explain takes it. Required.
	// The images of skills that manifests name are those that the folder keeps.
	State, Ref string
	// Paths are files, folders or "-" (Stdin) with policies in place of those of the run;
	// none: those of the run judge.
	Paths []string
	Stdin io.Reader
	// Policies are names of those that judge, in place of all that concern the agent.
	Policies []string
}

// Replayed is what became of the calls of a run.
type Replayed struct {
	Run string `json:"run"`
	// Judged counts the calls that were judged again.
	Judged int `json:"judged"`
	// Flips are those about which the decision is another one.
	Flips []Flip `json:"flips"`
	// NotJudged are those whose circumstances were not recorded.
	NotJudged []NotJudged `json:"notJudged"`
	// Policies are what judged, by agent.
	Policies []Judge `json:"policies"`
}

// Flip is a call about which another decision is made.
type Flip struct {
	Call string          `json:"call"`
	Step int             `json:"step"`
	Time time.Time       `json:"time"`
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	Was  Ruling          `json:"was"`
	Now  Ruling          `json:"now"`
}

// Ruling is a decision and the rule that made it.
type Ruling struct {
	Decision message.Action `json:"decision"`
	Rule     string         `json:"rule"`
	Policy   string         `json:"policy"`
	// File and Line of the rule; "" and 0 for a rule that is in no file.
	File   string `json:"file"`
	Line   int    `json:"line"`
	Reason string `json:"reason,omitempty"`
}

// NotJudged is a call that was not judged again.
type NotJudged struct {
	Call string `json:"call"`
	Step int    `json:"step"`
	Tool string `json:"tool"`
	Why  string `json:"why"`
}

// Judge is a policy that has judged again.
type Judge struct {
	Agent  string `json:"agent"`
	Policy string `json:"policy"`
	// From is Manifests, Shipped, or Run for one that counts as the run has recorded it.
	From string `json:"from"`
	// Narrows: it is one of the run, the repository or an agent above, and allows nothing.
	Narrows bool `json:"narrows,omitempty"`
}

// Where a Judge comes from.
const (
	FromManifests = "Manifests"
	FromShipped   = "Shipped"
	FromRun       = "Run"
)

// Replay judges the recorded calls of a run again, each with what had happened before it.
// Nothing is executed. Its errors are a *manifest.InvalidError or a *reason.UsageError, or
// mean that the journal cannot be read.
func Replay(ctx context.Context, o ReplayOptions) (*Replayed, error) {
	found, err := journal.FindRun(o.State, o.Ref)
	if err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	r := &replay{ReplayOptions: o, found: found, out: &Replayed{Run: found.ID, Flips: []Flip{}, NotJudged: []NotJudged{}, Policies: []Judge{}}, files: world{found: found}}
	for d, err := range read(ctx, found) {
		if err != nil {
			return nil, err
		}
		if err := r.decision(ctx, d); err != nil {
			return nil, err
		}
	}
	return r.out, nil
}

// replay is a replay on its way.
type replay struct {
	ReplayOptions
	found   journal.Found
	out     *Replayed
	files   world
	catalog *admission.Catalog
	// key is what plans were made for: that of the turn, with the functions described so far.
	key       string
	was, now  *plan.Plan
	described int
}

// decision judges one call again.
func (r *replay) decision(ctx context.Context, d *decision) error {
	if err := r.plans(ctx, d); err != nil {
		return err
	}
	call := message.ToolCall{ID: d.call.CallID, Tool: d.call.Tool, Args: d.args(r.was), Step: d.step, Again: true}
	engine := policy.NewEngine(r.was.Rules, d.context(r.was))
	again, err := engine.Decide(ctx, call)
	if err != nil {
		return err
	}
	target, judged := engine, r.was
	if r.now != r.was {
		target, judged = policy.NewEngine(r.now.Rules, d.context(r.now)), r.now
	}
	why, err := r.unlike(d, again, target.Relies(call))
	if err != nil {
		return err
	}
	if why != "" {
		r.out.NotJudged = append(r.out.NotJudged, NotJudged{call.ID, call.Step, call.Tool, why})
		return nil
	}
	r.out.Judged++
	now := again
	if target != engine {
		if now, err = target.Decide(ctx, call); err != nil {
			return err
		}
	}
	if beyond(d.made.Rule) && now.Action != message.Deny {
		now.Action, now.Rule, now.Message = message.Ask, d.made.Rule, d.made.Message
	}
	if now.Action == d.made.Action && (now.Action != message.Redact || bytes.Equal(now.Args, d.made.Args)) {
		return nil
	}
	r.out.Flips = append(r.out.Flips, Flip{
		Call: call.ID, Step: call.Step, Time: d.at.Time, Tool: call.Tool, Args: call.Args,
		Was: ruling(ctx, engine, r.was, call, d.made), Now: ruling(ctx, target, judged, call, now),
	})
	return nil
}

// beyond reports whether no policy has decided: the loop guard or the plan asks.
func beyond(rule string) bool { return rule == loopRule || rule == planRule }

func ruling(ctx context.Context, e *policy.Engine, p *plan.Plan, call message.ToolCall, d message.Decision) Ruling {
	from := e.Origin(ctx, p.AllRules(), call, d)
	r := Ruling{Decision: d.Action, Rule: from.Rule, Policy: from.Policy, Reason: d.Message}
	r.File, r.Line = p.Locate(from)
	return r
}

// presentPrefix begins the message of a refusal by policies of a control plane that came
// after the plan of the run.
const presentPrefix = "by the policies as they are now"

// unlike returns why the call cannot be judged as it was: something that counts is not in
// the journal. Again is what the policies of the run decide about it now.
func (r *replay) unlike(d *decision, again message.Decision, relies policy.Reliance) (string, error) {
	made := d.made
	switch {
	case made.Action == message.Deny && strings.HasPrefix(made.Message, presentPrefix):
		return "it was refused by policies that were made while the run waited, and the journal does not hold them", nil
	case made.Hash == "" && again.Hash != "":
		return "no policy has decided: " + cmp.Or(made.Message, "the rule was "+made.Rule), nil
	case !beyond(made.Rule) && made.Hash != again.Hash && len(made.Args)+len(again.Args) == 0:
		return "its arguments in the journal, or the tool, are not those that were judged: secrets are taken out of a journal", nil
	case len(made.Facts) > 0 && len(again.Facts) > 0 && sameFacts(made.Facts, again.Facts):
		return "", nil // all that was found out about the call then is found out now
	}
	why, err := r.files.unlike(d, relies)
	if err != nil || why != "" {
		return why, err
	}
	if len(made.Facts) > 0 && len(relies.Paths)+len(relies.Names) > 0 && !sameFacts(made.Facts, relies.Facts) {
		return "it is found to do something else than then: a file outside of the run has changed, or this version reads commands otherwise", nil
	}
	return "", nil
}

// sameFacts compares facts without what was said of them.
func sameFacts(a, b json.RawMessage) bool {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	delete(x, "audit")
	delete(y, "audit")
	p, errX := json.Marshal(x)
	q, errY := json.Marshal(y)
	return errX == nil && errY == nil && bytes.Equal(p, q)
}

// plans makes the plans by which a call was judged, and is judged.
func (r *replay) plans(ctx context.Context, d *decision) error {
	if key := d.view.Started.Plan; r.was != nil && r.key == key && r.described == len(d.view.Described) {
		return nil
	}
	var err error
	if r.was, err = d.plan(r.found); err != nil {
		return err
	}
	newTurn := r.key != d.view.Started.Plan
	r.key, r.described, r.now = d.view.Started.Plan, len(d.view.Described), r.was
	var judges []Judge
	if len(r.Paths)+len(r.Policies) > 0 {
		if err := r.read(ctx); err != nil {
			return err
		}
		if r.now, judges, err = r.other(r.was); err != nil {
			return err
		}
	} else {
		judges = judgesOf(r.was, func(string) string { return FromRun })
	}
	if !newTurn {
		return nil
	}
	for _, j := range judges {
		if !slices.Contains(r.out.Policies, j) {
			r.out.Policies = append(r.out.Policies, j)
		}
	}
	return nil
}

func judgesOf(p *plan.Plan, from func(policy string) string) (all []Judge) {
	for _, pol := range p.Policies {
		all = append(all, Judge{Agent: p.Agent.Name, Policy: pol.Name, From: from(pol.Name)})
	}
	for _, c := range p.Ceilings {
		for _, pol := range c.Policies {
			all = append(all, Judge{Agent: p.Agent.Name, Policy: pol.Name, From: from(pol.Name), Narrows: true})
		}
	}
	return all
}

// read reads the manifests, once.
func (r *replay) read(ctx context.Context) error {
	if r.catalog != nil {
		return nil
	}
	named := slices.Clone(r.Policies)
	for _, ref := range r.was.Agent.Spec.PolicyRefs {
		named = append(named, ref.Name)
	}
	o := registries().Admission(admission.Options{RunPolicies: named, SkipTests: true, Images: func(ref string) (string, error) { return artifact.OfSkills(r.State, true)(ctx, ref) }})
	_, catalog, found := admission.Read(ctx, r.Paths, r.Stdin, o)
	if found.HasErrors() {
		return &manifest.InvalidError{Findings: found}
	}
	r.catalog = catalog
	return nil
}

// from is where a policy that judges comes from.
func (r *replay) from(name string) string {
	switch _, ok := r.catalog.Policies[name]; {
	case !ok:
		return FromRun
	case r.catalog.Shipped(name):
		return FromShipped
	}
	return FromManifests
}

// other is a plan of the run with other policies:
//
//	named by the options               that one alone, of the manifests, shipped or of the run
//	in the manifests                   if the agent names it, or its selector matches
//	named by the agent, and not there  as shipped, else as the run has recorded it
//	narrows the run or the agent       as recorded, unless one of that name is there
func (r *replay) other(was *plan.Plan) (*plan.Plan, []Judge, error) {
	resolved := *was.Plan
	agent := was.Agent
	if e, ok := r.catalog.Agents[agent.Name]; ok {
		agent = e.Object
	}
	recorded := func(name string) *v1alpha1.Policy {
		at := slices.IndexFunc(was.Policies, func(p *v1alpha1.Policy) bool { return p.Name == name })
		if at < 0 {
			return nil
		}
		return was.Policies[at]
	}
	resolved.Policies = nil
	add := func(p *v1alpha1.Policy) {
		if !slices.ContainsFunc(resolved.Policies, func(q *v1alpha1.Policy) bool { return q.Name == p.Name }) {
			resolved.Policies = append(resolved.Policies, p)
		}
	}
	for _, name := range r.Policies {
		e, ok := r.catalog.Policies[name]
		p := recorded(name)
		switch {
		case ok && (!r.catalog.Shipped(name) || p == nil || len(r.Paths) > 0):
			add(e.Object)
		case p != nil:
			add(p)
		default:
			return nil, nil, r.noPolicy(name)
		}
	}
	if len(r.Policies) == 0 {
		for _, e := range r.catalog.Policies {
			if admission.Concerns(e.Object, agent) {
				add(e.Object)
			}
		}
		for _, ref := range agent.Spec.PolicyRefs {
			if p := recorded(ref.Name); p != nil {
				add(p)
			}
		}
		if !slices.ContainsFunc(resolved.Policies, func(p *v1alpha1.Policy) bool { return r.from(p.Name) == FromManifests }) && r.catalog.Agents[agent.Name].Object == nil && !r.narrows(was) {
			return nil, nil, reason.Usagef("no policy of %s concerns agent %s: it names none of them, and no selector matches its labels", strings.Join(r.Paths, ", "), agent.Name).
				WithHint("name the policies that judge with --policy")
		}
	}
	slices.SortFunc(resolved.Policies, func(a, b *v1alpha1.Policy) int { return strings.Compare(a.Name, b.Name) })
	resolved.Ceilings = nil
	for _, c := range was.Ceilings {
		c.Policies = slices.Clone(c.Policies)
		for i, p := range c.Policies {
			if e, ok := r.catalog.Policies[p.Name]; ok && !c.Repository && r.from(p.Name) == FromManifests {
				c.Policies[i] = e.Object
			}
		}
		resolved.Ceilings = append(resolved.Ceilings, c)
	}
	now := was.WithPolicies(&resolved)
	r.catalog.PlaceRules(now.Plan)
	return now, judgesOf(now, r.from), nil
}

// narrows reports whether the manifests hold a policy that narrows the run.
func (r *replay) narrows(was *plan.Plan) bool {
	for _, c := range was.Ceilings {
		for _, p := range c.Policies {
			if !c.Repository && r.from(p.Name) == FromManifests {
				return true
			}
		}
	}
	return false
}

func (r *replay) noPolicy(name string) error {
	var known []string
	for n := range r.catalog.Policies {
		known = append(known, n)
	}
	for _, p := range r.was.Policies {
		known = append(known, p.Name)
	}
	known = append(known, policies.Names()...)
	slices.Sort(known)
	known = slices.Compact(known)
	hint := "--policy names one of " + strings.Join(known, ", ")
	if near := reason.Nearest(name, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	return reason.Usagef("there is no policy %q in the manifests, and the run had none of that name", name).WithHint(hint)
}
