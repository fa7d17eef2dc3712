package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
)

// Agent is the agent that makes the call.
type Agent struct {
	Name, Namespace string
	Labels          map[string]string
	Mode            string
	Depth           int
	Parents         []string
}

// Run is the run in which a call happens.
type Run struct {
	Name        string
	Interactive bool
	User        string
	Inputs      map[string]any
	Labels      map[string]string
}

// Workspace is where the tools work.
type Workspace struct {
	// Root is the folder the tools see, absolute.
	Root string
	// Source is the folder the files came from; it is shown to people.
	Source string

	// ownTemporary: the sandbox of a call has a folder for temporary files of its own.
	ownTemporary bool
	// real is Root without links while one call is judged; "" where it was not looked up.
	real string
}

// Use is a limited quantity; a Limit of 0 means no limit.
type Use struct{ Used, Limit int64 }

// Money is a limited amount of US dollars; a Limit of 0 means no limit.
type Money struct{ Used, Limit float64 }

// Budget is what the run has used so far. The cost counts the answers whose price is
// known.
type Budget struct {
	Tokens, Steps, Seconds Use
	Cost                   Money
}

// Approvals counts the answers to questions of the run so far.
type Approvals struct{ Granted, Refused int }

// Context is everything besides policies and call that a decision depends on.
type Context struct {
	Agent     Agent
	Run       Run
	Workspace Workspace
	Tools     []Tool
	// Ready waits until the files of the workspace are there: a call is judged by
	// what they are. A call that is judged although they are not cannot run. Nil:
	// they are.
	Ready func(context.Context) error
	// Now is the recorded time of a call. Nil: rules that read now deny.
	Now func() time.Time
	// Budget is asked once per decision. Nil: rules that read budget deny.
	Budget func() Budget
	// Approvals is asked where a rule reads them. Nil: none yet.
	Approvals func() Approvals
	// Calls judged before, by tool, when a run is resumed.
	Calls map[string]int
	// Denials before, when a run is resumed.
	Denials int
	// Ceilings are sets of policies that can only narrow what the engine's own allow;
	// each is judged by itself. See Engine.narrow.
	Ceilings []Ceiling
	// Demand returns why a person is asked about a call that the policies let run, "" for a
	// call that may run without; see Engine.demand. Nil: none is asked.
	Demand func(message.ToolCall) string
	// Traced is called with what each policy said about each call that is judged, and about
	// each result that is reviewed, whatever was decided: every rule is then asked a second
	// time. Nil: that costs nothing.
	Traced func(policy string, t RuleTrace, result bool)
}

// Engine judges the calls of one agent in one run. It may be used by many
// goroutines.
type Engine struct {
	context Context
	tools   map[string]*judged
	// reader judges the reading of single files, whichever tool reads them.
	reader *judged
	// byPath: a rule or a list depends on paths; names are those of files with several
	// names.
	byPath bool
	names  *names
	// tracked are the files that git may show.
	tracked *tracked
	// fixed are the variables that stay the same for the run.
	fixed map[string]any
	// ceilings judge each call after the engine's own policies.
	ceilings []*Engine
	// tightens: the engine is that of a Ceiling with Tightens.
	tightens bool
	policies []*Compiled

	mu      sync.Mutex
	calls   map[string]int
	denials int
}

// judged is a tool with the rules that can concern it: the index on match,
// applied once instead of at each call.
type judged struct {
	tool     *Tool
	args     expr.Type
	value    map[string]any
	enforced group
	// others are policies that do not enforce, each as a group of its own.
	others []group
}

// group is a set of rules that are decided together.
type group struct {
	mode  v1alpha1.PolicyMode
	calls map[v1alpha1.Action][]*rule
	after map[v1alpha1.Action][]*rule
	lists []*Compiled
	def   v1alpha1.DefaultAction
	from  string
	// byPath: a rule could refuse a call because of a path; listed: a list could.
	byPath, listed bool
}

// NewEngine makes the judge of one agent's calls in one run.
func NewEngine(policies []*Compiled, c Context) *Engine {
	e := &Engine{
		context: c, tools: map[string]*judged{}, tracked: &tracked{listings: map[string]*listing{}}, names: &names{found: map[string]*found{}}, calls: map[string]int{}, denials: c.Denials,
	}
	maps.Copy(e.calls, c.Calls)
	policies = slices.Clone(policies)
	slices.SortStableFunc(policies, func(a, b *Compiled) int { return strings.Compare(a.name, b.name) })
	e.policies = policies
	e.fixed = map[string]any{"agent": agentValue(c.Agent), "run": runValue(c)}
	for i := range c.Tools {
		t := &c.Tools[i]
		e.tools[t.Name] = e.judgedTool(t, policies)
	}
	e.ceilings = newCeilings(c)
	e.reader = e.newReader(policies)
	e.byPath = e.reader.speaksOfPaths()
	for _, j := range e.tools {
		e.byPath = e.byPath || j.speaksOfPaths()
	}
	return e
}

// With returns an engine of other policies, for the same run as it is now.
func (e *Engine) With(policies []*Compiled) *Engine {
	e.mu.Lock()
	c := e.context
	c.Calls, c.Denials = maps.Clone(e.calls), e.denials
	e.mu.Unlock()
	return NewEngine(policies, c)
}

func (e *Engine) judgedTool(t *Tool, policies []*Compiled) *judged {
	j := &judged{tool: t, args: argsType(t), value: toolValue(t), enforced: newGroup(v1alpha1.PolicyEnforce)}
	for _, p := range policies {
		mode := p.spec.Mode
		g := &j.enforced
		if mode == v1alpha1.PolicyWarn || mode == v1alpha1.PolicyAudit {
			j.others = append(j.others, newGroup(mode))
			g = &j.others[len(j.others)-1]
		}
		g.take(p, e.context.Agent.Name, t)
	}
	j.enforced.note()
	return j
}

func newGroup(mode v1alpha1.PolicyMode) group {
	return group{mode: mode, calls: map[v1alpha1.Action][]*rule{}, after: map[v1alpha1.Action][]*rule{}}
}

func (g *group) take(p *Compiled, agent string, t *Tool) {
	if len(p.entries) > 0 {
		g.lists = append(g.lists, p)
	}
	if strictness(p.spec.Default) > strictness(g.def) {
		g.def, g.from = p.spec.Default, p.name
	}
	for _, r := range p.rules[t.compiledAs()] {
		if !MatchesAgent(&r.spec.Match, agent) || !selects(&r.spec.Match, t) {
			continue
		}
		action := r.spec.Action
		if r.broken || rank(action) <= 0 {
			// A rule that did not compile cannot be judged: it denies.
			action = v1alpha1.ActionDeny
		}
		if r.spec.On == v1alpha1.OnResult {
			g.after[action] = append(g.after[action], r)
		} else {
			g.calls[action] = append(g.calls[action], r)
		}
	}
}

func strictness(d v1alpha1.DefaultAction) int {
	return slices.Index([]v1alpha1.DefaultAction{"", v1alpha1.DefaultAllow, v1alpha1.DefaultByRisk, v1alpha1.DefaultAsk, v1alpha1.DefaultDeny}, d)
}

// Decide judges a call. What cannot be judged is denied; the error is that of a
// context that ends while the call is judged.
func (e *Engine) Decide(ctx context.Context, call message.ToolCall) (message.Decision, error) {
	j, ok := e.tools[call.Tool]
	if !ok {
		return message.Decision{Action: message.Deny, Rule: "default/unknown-tool", Message: fmt.Sprintf("there is no tool %s", call.Tool)}, nil
	}
	if e.context.Ready != nil {
		_ = e.context.Ready(ctx) // what keeps them away keeps the call from running
	}
	d, err := e.decideInTime(ctx, j, call)
	if err == nil {
		d, err = e.narrow(ctx, j, call, d)
	}
	if err != nil {
		return d, err
	}
	if d.Action != message.Allow && d.Action != message.Redact {
		d.Binding = nil // nothing runs, or what a person approves
	}
	if call.Again {
		return d, nil // it counts once
	}
	e.mu.Lock()
	e.calls[call.Tool]++
	if d.Action == message.Deny {
		e.denials++
	}
	e.mu.Unlock()
	return d, nil
}

// Limits of the time that one decision takes. Judging reads names from file
// systems, and one that is mounted over a network can keep a process waiting.
const (
	decideTime = time.Minute
	// graceTime is given to a decision that is being made when its context ends.
	graceTime = time.Second
)

// decideInTime ends with ctx, and denies a call whose decision takes too long. The
// goroutine of such a decision waits in a system call that nothing can end; it
// ends with that, and its result is dropped.
func (e *Engine) decideInTime(ctx context.Context, j *judged, call message.ToolCall) (message.Decision, error) {
	decided := make(chan message.Decision, 1)
	go func() { decided <- e.decide(ctx, j, call) }()
	limit := time.NewTimer(decideTime)
	defer limit.Stop()
	select {
	case d := <-decided:
		return d, nil
	case <-limit.C:
		return message.Decision{
			Action: message.Deny, Rule: "default/error", Risk: string(j.tool.risk()),
			Message: fmt.Sprintf("the call could not be judged within %s: a file system that it names does not answer", decideTime),
		}, nil
	case <-ctx.Done():
	}
	limit.Reset(graceTime)
	select {
	case d := <-decided:
		return d, nil
	case <-limit.C:
		return message.Decision{}, fmt.Errorf("judge the call: %w", context.Cause(ctx))
	}
}

func (e *Engine) decide(ctx context.Context, j *judged, call message.ToolCall) (d message.Decision) {
	defer func() {
		if r := recover(); r != nil {
			d = message.Decision{Action: message.Deny, Rule: "default/error", Message: fmt.Sprintf("the call could not be judged: %v", r), Risk: string(j.tool.risk())}
		}
	}()
	in, err := e.input(j, call)
	if err != nil {
		return message.Decision{Action: message.Deny, Rule: "default/error", Message: "the arguments cannot be read: " + err.Error(), Risk: string(j.tool.risk())}
	}
	e.traced(ctx, j, in, false)
	o := e.reach(ctx, j, in, j.enforced.outcome(ctx, j, in, false))
	var rewritten json.RawMessage
	if len(o.redactions) > 0 && o.action != v1alpha1.ActionDeny {
		o, in, rewritten = e.redact(ctx, j, in, call, o)
	}
	lets := message.Action(o.action)
	demanded := e.demand(call, &o)
	d = message.Decision{Action: message.Action(o.action), Rule: o.rule, Message: o.message, Risk: string(j.tool.risk()), Warnings: o.warnings}
	if o.action != v1alpha1.ActionDeny {
		d.Args = rewritten
	}
	audit := e.observe(ctx, j, in, &d)
	if d.Action == message.Ask || d.Action == message.Deny || len(audit) > 0 {
		d.Facts = in.describe(audit)
	}
	if d.Action == message.Ask {
		if d.Always, d.Once = j.remember(in); in.facts.renamed {
			d.Always, d.Once = nil, "a file has several names"
		}
	}
	if demanded {
		d.Always, d.Once = nil, "the plan asks each time"
	}
	d.Hash = Hash(j.tool.Digest, in.raw)
	d.Outside = e.outside(ctx, j, in, lets)
	d.Alters, d.Depends = j.alters(in.facts), in.facts.shell || len(in.facts.paths) > 0
	d.Binding = e.binding(j, in)
	return d
}

// alters reports whether a call may change the files of the workspace.
func (j *judged) alters(f *facts) bool {
	if f.shell {
		return f.script.Dynamic || f.script.Opaque || len(f.script.Writes) > 0 || len(f.script.Deletes) > 0
	}
	return slices.Contains(j.tool.Effects, v1alpha1.EffectWrite) || slices.Contains(j.tool.Effects, v1alpha1.EffectExecute)
}

// redact rewrites a call and judges it again. The arguments are nil when nothing
// was taken away.
func (e *Engine) redact(ctx context.Context, j *judged, in *input, call message.ToolCall, o outcome) (outcome, *input, json.RawMessage) {
	failed := func(rule, message string, err error) (outcome, *input, json.RawMessage) {
		return outcome{action: v1alpha1.ActionDeny, rule: rule, message: message + err.Error()}, in, nil
	}
	if o.action == v1alpha1.ActionRedact {
		lets, err := redactArgs(call.Args, o.certain)
		if err != nil {
			return failed(o.rule, "the redaction failed: ", err)
		}
		if string(lets) == string(call.Args) {
			// A rule that takes nothing away lets nothing run.
			redactions := o.redactions
			o = e.reach(ctx, j, in, j.enforced.outcome(ctx, j, in, true))
			o.redactions = redactions
		}
	}
	rewritten, err := redactArgs(call.Args, o.redactions)
	if err != nil {
		return failed(o.redactions[0].id, "the redaction failed: ", err)
	}
	if string(rewritten) == string(call.Args) {
		return o, in, nil
	}
	second, changed, err := e.again(ctx, j, call, rewritten, o)
	if err != nil {
		return failed("default/error", "", err)
	}
	return second, changed, rewritten
}

// again judges a rewritten call: deny and ask count, once.
func (e *Engine) again(ctx context.Context, j *judged, call message.ToolCall, args json.RawMessage, first outcome) (outcome, *input, error) {
	call.Args = args
	in, err := e.input(j, call)
	if err != nil {
		return outcome{}, in, fmt.Errorf("the rewritten arguments cannot be read: %w", err)
	}
	second, failed := j.enforced.strict(ctx, j, in)
	if failed != nil && second.action != v1alpha1.ActionDeny {
		second = *failed
	}
	second = e.reach(ctx, j, in, second)
	if rank(second.action) > rank(first.action) {
		return second, in, nil
	}
	return first, in, nil
}

// observe judges the policies that do not enforce: Warn becomes a warning of
// the decision, Audit is recorded with its facts.
func (e *Engine) observe(ctx context.Context, j *judged, in *input, d *message.Decision) (audit []string) {
	for i := range j.others {
		g := &j.others[i]
		o := g.outcome(ctx, j, in, true)
		if o.action == v1alpha1.ActionAllow || o.rule == "" || strings.HasPrefix(o.rule, "default/") && o.rule != ruleDynamic {
			continue
		}
		line := fmt.Sprintf("%s would %s: %s", o.rule, o.action, o.message)
		if g.mode == v1alpha1.PolicyWarn {
			d.Warnings = append(d.Warnings, line)
		} else {
			audit = append(audit, line)
		}
	}
	return audit
}

// Hash binds an approval to a call: it covers the tool's digest and the
// arguments in canonical form.
func Hash(digest string, args json.RawMessage) string {
	canonical, err := canonicalJSON(args)
	if err != nil {
		canonical = args
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s", len(digest), digest)
	h.Write(canonical)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// HiddenTools names the tools that are denied whatever the arguments are; they
// are not offered to the model.
func (e *Engine) HiddenTools() []string {
	var hidden []string
	for name, j := range e.tools {
		if j.enforced.always(j.tool) {
			hidden = append(hidden, name)
		}
	}
	for _, c := range e.ceilings {
		hidden = append(hidden, c.HiddenTools()...)
	}
	slices.Sort(hidden)
	return slices.Compact(hidden)
}

// always reports whether every call of the tool is denied: by a rule that always holds, by
// a list, or because nothing could allow it or ask about it.
func (g *group) always(t *Tool) bool {
	if slices.ContainsFunc(g.calls[v1alpha1.ActionDeny], (*rule).holds) {
		return true
	}
	if slices.ContainsFunc(g.lists, func(p *Compiled) bool { return denied(p.entries, t.names()) }) {
		return true
	}
	if g.def != v1alpha1.DefaultDeny || slices.ContainsFunc(g.calls[v1alpha1.ActionAsk], (*rule).possible) {
		return false
	}
	lifted := func(r *rule) bool { return lifts(r, t) && r.possible() }
	if slices.ContainsFunc(g.calls[v1alpha1.ActionAllow], lifted) || slices.ContainsFunc(g.calls[v1alpha1.ActionRedact], lifted) {
		return false
	}
	// What is not known of a script is asked about where it could be denied.
	if t.runsCommands() && (slices.ContainsFunc(g.calls[v1alpha1.ActionDeny], (*rule).possible) || len(g.lists) > 0) {
		return false
	}
	return !slices.ContainsFunc(g.lists, func(p *Compiled) bool { return p.softens(t) })
}

// holds reports whether a rule's condition is always true.
func (r *rule) holds() bool {
	if r.when == nil || r.broken {
		return !r.broken && !r.negated
	}
	value, constant := r.when.Constant()
	return constant && value != r.negated
}

// possible reports whether a rule's condition can be true.
func (r *rule) possible() bool {
	if r.when == nil || r.broken {
		return !r.negated
	}
	value, constant := r.when.Constant()
	return !constant || value != r.negated
}
