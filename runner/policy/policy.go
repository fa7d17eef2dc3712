// Package policy judges a call.
//
// A policy is compiled against the tools it can meet, so that a misspelt
// argument is an error of its author. A decision is a pure function of the
// policies, the call and the recorded context: the order of rules, files and
// policies never matters, and deny beats ask, ask beats redact, redact beats
// allow, allow beats the default. What cannot be judged is denied, what cannot
// be known is asked.
package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
)

// Tool is what a policy knows about a tool.
type Tool struct {
	// Name is the call name.
	Name string
	// Builtin is the name of the built-in tool behind it, or "".
	Builtin string
	// Source is the kind of program, one of v1alpha1.ToolSourceKinds.
	Source string
	// Risk, Effects and Category after the floors of built-in tools. An empty
	// Risk counts as R2.
	Risk     v1alpha1.Risk
	Effects  []v1alpha1.Effect
	Category v1alpha1.Category
	// Schema of the arguments; nil is not known, and the arguments are untyped.
	Schema json.RawMessage
	// Digest of the program and its contract; approvals are bound to it.
	Digest string
	// Server is what answers each of its calls, as in https://search.example:443; "" where
	// the arguments name the servers, if any.
	Server string
	// Annotations of its manifest.
	Annotations map[string]string
	// Contained: a call has no lasting effect outside: the isolation is at least Sandbox,
	// the network None, the workspace a copy.
	Contained bool
	// OwnTemporary: the sandbox of its calls has a /tmp of its own, and no file of the host
	// is in it.
	OwnTemporary bool
	// Binds: a call may be bound to what it was found to do; see Engine.binding.
	Binds bool
	// Several: the program serves functions that are not known yet. Their call names
	// begin with Name and "_", and their arguments are untyped.
	Several bool
	// Of is the name of the Tool with Several that a function is of; "" for other tools.
	Of string
}

// compiledAs is the name that the rules of a tool were compiled for.
func (t *Tool) compiledAs() string { return cmp.Or(t.Of, t.Name) }

// Named returns the tool that a call name means: a tool, or a function of one with Several.
func Named(tools []Tool, name string) (Tool, bool) {
	if at := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name && !t.Several }); at >= 0 {
		return tools[at], true
	}
	of := -1
	for i := range tools {
		if tools[i].Several && strings.HasPrefix(name, tools[i].Name+"_") && (of < 0 || len(tools[of].Name) < len(tools[i].Name)) {
			of = i
		}
	}
	if of < 0 {
		return Tool{}, false
	}
	t := tools[of]
	t.Name, t.Of, t.Several = name, t.Name, false
	return t, true
}

func (t *Tool) risk() v1alpha1.Risk {
	if t.Risk == "" {
		return v1alpha1.RiskR2
	}
	return t.Risk
}

// Problem is something wrong with a policy.
type Problem struct {
	// Path of the field, for example spec.rules[2].when.
	Path string
	// Line and Col inside an expression, counted from 1; 0 when the field as a
	// whole is meant.
	Line, Col  int
	Message    string
	Suggestion string
	// Warning problems do not keep a policy from being used.
	Warning bool
	// Never: the rule or permission never counts.
	Never bool
}

// String returns the problem on one line.
func (p Problem) String() string {
	if p.Suggestion == "" {
		return p.Path + ": " + p.Message
	}
	return p.Path + ": " + p.Message + "; " + p.Suggestion
}

// Compiled is a policy that is ready to judge calls of the tools it was
// compiled for.
type Compiled struct {
	name    string
	spec    *v1alpha1.PolicySpec
	params  any
	entries []entry
	// rules by tool and phase.
	rules map[string][]*rule
	vars  map[string]map[string]*expr.Program
	// origin is what a mutant was made of.
	origin *Compiled
}

// rule is a rule compiled for one tool.
type rule struct {
	policy  *Compiled
	spec    *v1alpha1.Rule
	id      string
	order   int
	when    *expr.Program // nil is true
	message *expr.Program
	// broken rules did not compile; they deny, should they ever be asked.
	broken bool
	// negated turns the condition round, in a mutant.
	negated bool
	// paths: the result of the condition can depend on a path.
	paths bool
	cond  condition
}

// Compile checks a policy against the tools it can meet. The result is never
// nil: a rule that does not compile denies, so that a caller who ignores an
// error is not less safe.
func Compile(p *v1alpha1.Policy, tools []Tool) (*Compiled, []Problem) {
	c := &compiler{
		policy: p, tools: tools, envs: map[string]*environment{},
		out: &Compiled{name: p.Name, spec: &p.Spec, rules: map[string][]*rule{}, vars: map[string]map[string]*expr.Program{}},
	}
	c.compile()
	return c.out, c.problems
}

// Name returns the policy's name.
func (c *Compiled) Name() string { return c.name }

type compiler struct {
	policy   *v1alpha1.Policy
	tools    []Tool
	out      *Compiled
	params   expr.Type
	envs     map[string]*environment
	problems []Problem
}

func (c *compiler) report(p Problem) { c.problems = append(c.problems, p) }

func (c *compiler) compile() {
	c.compileParams()
	c.compilePermissions()
	seen := map[string]int{}
	for i := range c.policy.Spec.Rules {
		r := &c.policy.Spec.Rules[i]
		path := fmt.Sprintf("spec.rules[%d]", i)
		if first, twice := seen[r.Name]; twice {
			c.report(Problem{Path: path + ".name", Message: fmt.Sprintf("the name %q is taken by spec.rules[%d]", r.Name, first), Suggestion: "names are unique in a policy"})
		} else {
			seen[r.Name] = i
		}
		c.compileRule(path, i, r)
	}
	c.checkVariables()
}

func (c *compiler) compileParams() {
	raw := json.RawMessage("{}")
	if p := c.policy.Spec.Params; p != nil && len(p.Raw) > 0 {
		raw = p.Raw
	}
	t, err := expr.Infer("Params", raw)
	if err == nil && t.Fields() == nil && string(raw) != "{}" {
		err = errors.New("params must be an object")
	}
	if err != nil {
		c.report(Problem{Path: "spec.params", Message: err.Error()})
		t = expr.NewObject("Params")
	}
	c.params = t
	c.out.params, _ = t.Decode(raw)
}

func (c *compiler) compileRule(path string, order int, r *v1alpha1.Rule) {
	var tools []*Tool
	for i := range c.tools {
		if canSelect(&r.Match, &c.tools[i]) {
			tools = append(tools, &c.tools[i])
		}
	}
	if len(tools) == 0 {
		if len(c.tools) > 0 {
			c.report(Problem{Path: path + ".match", Message: "no tool is selected, so the rule never counts", Warning: true, Never: true, Suggestion: nearestTool(r, c.tools)})
		}
		// The expressions are still checked, against untyped arguments.
		tools = []*Tool{{Name: ""}}
	}
	c.checkRule(path, r, tools)
	when := c.newMatrix(path+".when", r.When, tools)
	when.result = r.On == v1alpha1.OnResult
	message := c.newMatrix(path+".messageExpression", r.MessageExpression, tools)
	message.text, message.result = true, r.On == v1alpha1.OnResult
	for _, t := range tools {
		out := &rule{policy: c.out, spec: r, id: c.policy.Name + "/" + r.Name, order: order}
		out.when = when.compile(t)
		out.paths = when.paths
		out.cond = when.condition(t, out.when)
		out.message = message.compile(t)
		out.broken = when.failed
		if when.typed() || message.typed() {
			c.out.vars[t.Name] = c.environment(t).vars
		}
		c.out.rules[t.Name] = append(c.out.rules[t.Name], out)
	}
	c.absences(path+".when", when)
	c.checkEdits(path+".when", r, tools, when)
	if p := when.any; p != nil {
		if v, constant := p.Constant(); constant && !v {
			c.report(Problem{Path: path + ".when", Message: "the condition is always false, so the rule never counts", Warning: true, Never: true})
		}
	}
}

// absences warns about parts of a condition that some calls do not have: the
// condition then fails, and its rule denies the call.
func (c *compiler) absences(path string, when *matrix) {
	seen := map[string]bool{}
	for _, p := range when.done {
		if p == nil {
			continue
		}
		for _, a := range p.Absences() {
			if seen[a.Text] || strings.HasSuffix(a.Text, ".argv[0]") { // a command has at least its name
				continue
			}
			seen[a.Text] = true
			c.report(Problem{
				Path: path, Message: fmt.Sprintf("%s may be absent: the condition then fails, and the call is denied", a.Text),
				Suggestion: fmt.Sprintf("put %s && before it", a.Guard), Warning: true,
			})
		}
	}
}

func (c *compiler) checkRule(path string, r *v1alpha1.Rule, tools []*Tool) {
	if r.Action == v1alpha1.ActionRedact && (r.Redact == nil || len(r.Redact.Fields) == 0 && !r.Redact.Secrets) {
		c.report(Problem{Path: path + ".redact", Message: "a redact rule must say what it removes", Suggestion: "set fields or secrets"})
	}
	if r.Action == v1alpha1.ActionAsk && r.On == v1alpha1.OnResult {
		c.report(Problem{Path: path + ".action", Message: "nobody can be asked about a result: it is withheld", Suggestion: "write deny or redact", Warning: true})
	}
	c.checkRedacted(path, r, tools)
	if r.Action != v1alpha1.ActionRedact && r.Redact != nil {
		c.report(Problem{Path: path + ".redact", Message: fmt.Sprintf("redact has no meaning with action %s", r.Action), Warning: true})
	}
	if r.Action != v1alpha1.ActionAllow || slices.Contains(r.Match.Risks, v1alpha1.RiskR3) {
		return
	}
	for _, t := range tools {
		// Few agents have a shipped tool of that risk: a rule for all tools is not about it.
		means := t.Builtin == "" || slices.Contains(r.Match.Tools, t.Name) || slices.Contains(r.Match.Builtins, t.Builtin)
		if means && t.risk() == v1alpha1.RiskR3 {
			c.report(Problem{
				Path: path + ".match", Message: fmt.Sprintf("the rule does not allow %s: its risk is R3", t.Name),
				Suggestion: "list R3 in match.risks if it should", Warning: true,
			})
			return
		}
	}
}

// checkRedacted warns of a field that no call can have. The name may still occur in a text
// that is JSON, so it is not an error.
func (c *compiler) checkRedacted(path string, r *v1alpha1.Rule, tools []*Tool) {
	if r.Redact == nil || len(r.Redact.Fields) == 0 || r.On == v1alpha1.OnResult || tools[0].Name == "" {
		return
	}
	known := map[string]bool{}
	for _, t := range tools {
		if !c.environment(t).args.Names(known) {
			return
		}
	}
	for i, f := range r.Redact.Fields {
		first, _, _ := strings.Cut(f, ".")
		if !known[first] {
			c.report(Problem{
				Path: fmt.Sprintf("%s.redact.fields[%d]", path, i), Message: fmt.Sprintf("no tool of the rule has an argument %s", f),
				Suggestion: expr.Nearest(first, slices.Collect(maps.Keys(known))), Warning: true,
			})
		}
	}
}

func nearestTool(r *v1alpha1.Rule, tools []Tool) string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	for _, pattern := range append(slices.Clone(r.Match.Tools), r.Match.Builtins...) {
		if s := expr.Nearest(pattern, names); s != "" {
			return s
		}
	}
	return ""
}

// checkVariables reports a variable that works for no tool at all.
func (c *compiler) checkVariables() {
	if len(c.policy.Spec.Variables) == 0 {
		return
	}
	if len(c.envs) == 0 {
		c.environment(&Tool{})
	}
	for i, v := range c.policy.Spec.Variables {
		var failure error
		works := false
		for _, e := range c.envs {
			works = works || e.failures[v.Name] == nil
			if err := e.failures[v.Name]; err != nil && (failure == nil || err.Error() < failure.Error()) {
				failure = err
			}
		}
		path := fmt.Sprintf("spec.variables[%d].expression", i)
		if !works && !slices.ContainsFunc(c.problems, func(p Problem) bool { return p.Path == path }) {
			c.report(problemAt(path, "", failure))
		}
	}
}

// problemAt turns an error of package expr into a problem.
func problemAt(path, tool string, err error) Problem {
	p := Problem{Path: path, Message: err.Error()}
	if e, ok := errors.AsType[*expr.Error](err); ok {
		p.Line, p.Col, p.Message, p.Suggestion = e.Line, e.Col, e.Message, e.Suggestion
	}
	if tool != "" {
		p.Message = strings.TrimSpace(p.Message) + fmt.Sprintf(" (for tool %s)", tool)
	}
	return p
}
