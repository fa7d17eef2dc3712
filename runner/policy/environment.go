package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
)

// facts that every environment shares. They are built once: object types are
// compared by identity.
var sharedVars = sync.OnceValue(func() []expr.Var {
	field := func(name string, t expr.Type) expr.Field { return expr.Field{Name: name, Type: t} }
	short, long := expr.String.Max(factText), expr.String.Max(factPath)
	places := expr.List(long).Max(factItems)
	texts, counts := expr.List(short).Max(factItems), expr.Counts()
	use := expr.NewObject("Use", field("used", expr.Int), field("limit", expr.Int))
	money := expr.NewObject("Money", field("used", expr.Double), field("limit", expr.Double))
	answers := expr.NewObject("Approvals", field("granted", expr.Int), field("refused", expr.Int))
	return []expr.Var{
		{Name: "agent", Type: expr.NewObject("Agent", field("name", expr.String), field("namespace", expr.String), field("labels", expr.Map(expr.String)),
			field("mode", expr.Enum("Primary", "Subagent", "All")), field("depth", expr.Int), field("parents", texts))},
		{Name: "run", Type: expr.NewObject("Run", field("name", expr.String), field("step", expr.Int), field("interactive", expr.Bool),
			field("user", expr.String), field("workspace", expr.String.Max(factPath)), field("inputs", expr.Map(expr.Dyn)), field("labels", expr.Map(expr.String)))},
		{Name: "tool", Type: expr.NewObject("Tool", field("name", expr.String), field("builtin", expr.String),
			field("source", expr.Enum(v1alpha1.ToolSourceKinds()...)), field("risk", expr.Range(0, 3)),
			field("effects", expr.List(expr.Enum("Read", "Write", "Execute", "Network", "Message", "Money"))),
			field("category", expr.Enum("Read", "Edit", "Delete", "Move", "Search", "Execute", "Think", "Fetch", "Other")),
			field("digest", expr.String), field("contained", expr.Bool), field("annotations", expr.Map(expr.String)))},
		{Name: "cmd", Type: expr.NewObject("Cmd", field("commands", expr.List(expr.NewObject("Command", field("name", short),
			field("argv", texts), field("env", texts), field("wrappers", texts), field("opaque", short))).Max(factItems)), field("writes", places), field("reads", places),
			field("hosts", texts), field("variables", texts), field("inherited", texts), field("network", expr.Bool), field("dynamic", expr.Bool), field("opaque", expr.Bool), field("reasons", texts))},
		{Name: "paths", Type: expr.List(expr.NewObject("Path", field("raw", long), field("clean", long), field("real", long),
			field("inWorkspace", expr.Bool), field("op", expr.Enum(opRead, opWrite, opExecute, opDelete)), field("secret", expr.Bool), field("links", expr.Int))).Max(factItems)},
		{Name: "net", Type: expr.NewObject("Net", field("hosts", texts), field("named", texts), field("ports", expr.List(expr.Int)), field("schemes", texts))},
		{Name: "session", Type: expr.NewObject("Session", field("calls", counts), field("denials", expr.Int), field("approvals", answers))},
		{Name: "budget", Type: expr.NewObject("Budget", field("tokens", use), field("steps", use), field("seconds", use), field("cost", money))},
		{Name: "now", Type: expr.Timestamp},
		{Name: "result", Type: expr.NewObject("Result", field("size", expr.Int), field("text", expr.String), field("error", expr.String), field("exitCode", expr.Int))},
	}
})

// environment is what one tool's calls look like to the expressions of a policy.
type environment struct {
	args expr.Type
	env  *expr.Env
	// vars that compile for this tool, and why the others do not.
	vars     map[string]*expr.Program
	failures map[string]error
}

// environment returns the environment for a tool; tools of one schema share it.
func (c *compiler) environment(t *Tool) *environment {
	key := string(t.Schema)
	if e, ok := c.envs[key]; ok {
		return e
	}
	e := c.newEnvironment(argsType(t))
	c.envs[key] = e
	return e
}

func argsType(t *Tool) expr.Type {
	if len(t.Schema) == 0 {
		return expr.Dyn
	}
	args, err := expr.FromSchema("Args", t.Schema)
	if err != nil {
		return expr.Dyn
	}
	return args
}

func (c *compiler) newEnvironment(args expr.Type) *environment {
	e := &environment{args: args, vars: map[string]*expr.Program{}, failures: map[string]error{}}
	var fields []expr.Field
	for _, v := range c.policy.Spec.Variables {
		env, err := c.newEnv(args, fields)
		if err == nil {
			e.vars[v.Name], err = env.Any(v.Expression)
		}
		if err != nil {
			delete(e.vars, v.Name)
			e.failures[v.Name] = err
			continue
		}
		fields = append(fields, expr.Field{Name: v.Name, Type: e.vars[v.Name].Output()})
	}
	env, err := c.newEnv(args, fields)
	if err != nil {
		// Two types of one name: a schema that borrows a name of ours.
		env, _ = c.newEnv(expr.Dyn, nil)
	}
	e.env = env
	return e
}

func (c *compiler) newEnv(args expr.Type, variables []expr.Field) (*expr.Env, error) {
	vars := slices.Clone(sharedVars())
	call := expr.NewObject("Call", expr.Field{Name: "id", Type: expr.String}, expr.Field{Name: "repeats", Type: expr.Int}, expr.Field{Name: "args", Type: args})
	vars = append(vars, expr.Var{Name: "call", Type: call}, expr.Var{Name: "params", Type: c.params},
		expr.Var{Name: "variables", Type: expr.NewObject("Variables", variables...)})
	return expr.NewEnv(vars...)
}

// matrix compiles one expression for each tool it can meet, once for all of
// them when it does not read what differs.
type matrix struct {
	c    *compiler
	path string
	src  string
	text bool
	// result: the rule is evaluated on the result of a call.
	result bool
	tools  []*Tool
	source *expr.Source
	shared bool
	// paths: the result of the expression can depend on a path.
	paths bool
	// fields of the arguments that the expression reads, where it reads nothing
	// else of what differs: tools that have them alike share a program.
	fields []string
	done   map[string]*expr.Program
	// conditions are what the programs read that read no variables.
	conditions map[*expr.Program]condition
	// any is a program that compiled.
	any      *expr.Program
	failed   bool
	reported bool
}

func (c *compiler) newMatrix(path, src string, tools []*Tool) *matrix {
	m := &matrix{c: c, path: path, src: src, tools: tools, done: map[string]*expr.Program{}, conditions: map[*expr.Program]condition{}}
	if src == "" {
		return m
	}
	source, err := expr.Parse(src)
	if err != nil {
		m.fail("", path, err)
		return m
	}
	m.source = source
	m.shared = !source.Reads("call", "args") && !source.Reads("variables")
	m.paths = !m.shared || source.Reads("paths")
	if !source.Reads("variables") && !source.ReadsWhole("call", "args") {
		m.fields = source.Fields("call", "args")
	}
	return m
}

// typed reports whether the expression is compiled for each tool separately.
func (m *matrix) typed() bool { return m.source != nil && !m.shared }

func (m *matrix) fail(tool, path string, err error) *expr.Program {
	m.failed = true
	if !m.reported {
		m.reported = true
		if len(m.tools) < 2 {
			tool = ""
		}
		m.c.report(problemAt(path, tool, err))
	}
	return nil
}

func (m *matrix) compile(t *Tool) *expr.Program {
	if m.src == "" || m.source == nil {
		return nil
	}
	key := m.key(t)
	if m.shared {
		t = &Tool{Name: t.Name}
	}
	if p, ok := m.done[key]; ok {
		return p
	}
	p := m.compileFor(t)
	m.done[key] = p
	if p != nil {
		m.any = p
	}
	return p
}

// condition is what a program for a tool reads.
func (m *matrix) condition(t *Tool, p *expr.Program) condition {
	if p == nil {
		return condition{}
	}
	if m.source.Reads("variables") {
		return m.c.examine(p, m.c.environment(t).vars)
	}
	known, ok := m.conditions[p]
	if !ok {
		known = m.c.examine(p, nil)
		m.conditions[p] = known
	}
	return known
}

// key is the same for tools that one program can serve.
func (m *matrix) key(t *Tool) string {
	if m.shared {
		return ""
	}
	if len(m.fields) == 0 {
		return string(t.Schema)
	}
	args := m.c.environment(t).args
	var alike strings.Builder
	for _, name := range m.fields {
		typ, ok := args.Field(name)
		text, plain := typ.Plain()
		if !ok || !plain {
			return string(t.Schema)
		}
		fmt.Fprintf(&alike, "fields:%q %s\n", name, text)
	}
	return alike.String()
}

func (m *matrix) compileFor(t *Tool) *expr.Program {
	if !m.result && m.source.Reads("result") {
		return m.fail("", m.path, &expr.Error{Line: 1, Col: 1, Message: "a call has no result yet", Suggestion: "set on: Result"})
	}
	e := m.c.environment(t)
	for i, v := range m.c.policy.Spec.Variables {
		if err := e.failures[v.Name]; err != nil && slices.Contains(m.source.Fields("variables"), v.Name) {
			return m.fail(t.Name, fmt.Sprintf("spec.variables[%d].expression", i), err)
		}
	}
	env, err := m.widen(t, e)
	if err != nil {
		return m.fail(t.Name, m.path, err)
	}
	var p *expr.Program
	if m.text {
		p, err = m.source.Text(env)
	} else {
		p, err = m.source.Bool(env)
	}
	if err == nil {
		return p
	}
	if bad, ok := errors.AsType[*expr.Error](err); ok && (bad.Object == "variables" || bad.Object == "params") && bad.Suggestion == "" {
		bad.Suggestion = "declare it in spec." + bad.Object
	}
	return m.fail(t.Name, m.path, err)
}

// widen adds the arguments that this tool lacks and another one of the rule
// has: has() is false on them. Reading them without has() is an error.
func (m *matrix) widen(t *Tool, e *environment) (*expr.Env, error) {
	if e.args.Fields() == nil {
		return e.env, nil
	}
	var extra []expr.Field
	for _, name := range m.source.Fields("call", "args") {
		if _, ok := e.args.Field(name); ok {
			continue
		}
		for _, other := range m.tools {
			typ, ok := m.c.environment(other).args.Field(name)
			if !ok {
				continue
			}
			if !m.source.Guarded(name, "call", "args") {
				return nil, &expr.Error{
					Line: 1, Col: 1, Message: fmt.Sprintf("%s has no argument %s, which %s has", t.Name, name, other.Name),
					Suggestion: fmt.Sprintf("write has(call.args.%s) && ..., or match fewer tools", name), Field: name, Object: "call.args",
				}
			}
			extra = append(extra, expr.Field{Name: name, Type: typ})
			break
		}
	}
	if len(extra) == 0 {
		return e.env, nil
	}
	wide := m.c.newEnvironment(e.args.With("Args", extra...))
	return wide.env, nil
}

// levels are the risks as numbers, for tool.risk.
var levels = map[v1alpha1.Risk]int64{v1alpha1.RiskR0: 0, v1alpha1.RiskR1: 1, v1alpha1.RiskR2: 2, v1alpha1.RiskR3: 3}
