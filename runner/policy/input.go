package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"unicode"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
)

// input holds everything of a call that a rule can read. It is used by one goroutine.
type input struct {
	raw   json.RawMessage
	facts *facts
	vars  map[string]any
	large bool
	// unknown is set when the facts of a script could not be established.
	unknown *expr.Unknowns
	// anywhere is set when hosts may be reached that the call does not name.
	anywhere bool
	// variables computed so far, by policy.
	variables map[*Compiled]*expr.Lazy
	tool      string
}

// hostUnknowns are the facts that are unknown when a host may be reached that the call
// does not name. Named hosts are in net.named.
func hostUnknowns() *expr.Unknowns {
	return expr.NewUnknowns([]string{"cmd", "hosts"}, []string{"net", "hosts"}, []string{"net", "ports"}, []string{"net", "schemes"})
}

// leaveOpen leaves open what a program reads of hosts, where that is not known. Others
// are spared it: an evaluation with unknown values takes several times as long.
func (in *input) leaveOpen(x expr.Input, p *expr.Program) expr.Input {
	if in.anywhere && x.Unknown == nil && (p.Reads("cmd", "hosts") || p.Reads("net") || p.Reads("variables")) {
		x.Unknown = hostUnknowns()
	}
	return x
}

// scriptUnknowns are the facts that a dynamic script leaves open. Whether it is
// dynamic, and why, is known; a command that is not known may be opaque.
func scriptUnknowns() *expr.Unknowns {
	return expr.NewUnknowns([]string{"cmd", "commands"}, []string{"cmd", "writes"}, []string{"cmd", "reads"}, []string{"cmd", "hosts"},
		[]string{"cmd", "variables"}, []string{"cmd", "inherited"}, []string{"cmd", "network"}, []string{"cmd", "opaque"}, []string{"paths"}, []string{"net"})
}

func (e *Engine) input(j *judged, call message.ToolCall) (*input, error) {
	raw := call.Args
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	args, err := j.args.Decode(raw)
	if err != nil {
		return nil, err
	}
	fields, ok := args.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("they are no object")
	}
	if err := unambiguous(fields, j.args.Fields()); err != nil {
		return nil, err
	}
	if err := alike(args); err != nil {
		return nil, err
	}
	f := e.context.Workspace.establish(j.tool, raw, args)
	if f.unreadable != nil {
		return nil, f.unreadable
	}
	e.rename(f)
	in := &input{raw: raw, facts: f, large: f.large, tool: j.tool.compiledAs(), variables: map[*Compiled]*expr.Lazy{}}
	if f.shell && f.script.Dynamic {
		in.unknown = scriptUnknowns()
	}
	in.anywhere = f.anywhere()
	in.vars = map[string]any{
		"agent": e.fixed["agent"], "run": e.fixed["run"], "tool": j.value,
		"call":    map[string]any{"id": call.ID, "repeats": call.Repeats, "args": args},
		"cmd":     sync.OnceValue(func() any { return f.cmdValue() }),
		"paths":   sync.OnceValue(func() any { return f.pathsValue() }),
		"net":     sync.OnceValue(func() any { return f.netValue() }),
		"session": func() any { return e.sessionValue() },
	}
	if step := call.Step; step > 0 {
		run := make(map[string]any, 9)
		maps.Copy(run, e.fixed["run"].(map[string]any))
		run["step"] = step
		in.vars["run"] = run
	}
	if now := e.context.Now; now != nil {
		in.vars["now"] = func() any { return now() }
	}
	if budget := e.context.Budget; budget != nil {
		in.vars["budget"] = func() any { return budgetValue(budget()) }
	}
	return in, nil
}

// unambiguous refuses an argument that differs from a declared one, or from
// another one, only by case: programs that ignore case would read it in place
// of the one that was judged.
func unambiguous(args map[string]any, declared []string) error {
	seen := make(map[string]string, len(args)+len(declared))
	for _, name := range declared {
		seen[fold(name)] = name
	}
	for name := range args {
		low := fold(name)
		if have, ok := seen[low]; ok && have != name {
			return fmt.Errorf("the argument %q can be taken for %q", name, have)
		}
		seen[low] = name
	}
	return nil
}

// fold makes names equal that a reader which ignores case takes for the same.
// Lower case is not enough: encoding/json reads the long s and the Kelvin sign
// as s and k.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for x := unicode.SimpleFold(r); x != r; x = unicode.SimpleFold(x) {
			least = min(least, x)
		}
		return least
	}, name)
}

// alike refuses members of one object, at any depth, whose names differ only by
// case, for the reason that unambiguous gives.
func alike(v any) error {
	switch v := v.(type) {
	case map[string]any:
		if err := unambiguous(v, nil); err != nil {
			return err
		}
		for _, x := range v {
			if err := alike(x); err != nil {
				return err
			}
		}
	case []any:
		for _, x := range v {
			if err := alike(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// of returns the input as one policy's rules read it.
func (in *input) of(ctx context.Context, p *Compiled) expr.Input {
	in.vars["params"] = p.params
	x := expr.Input{Vars: in.vars, Large: in.large, Unknown: in.unknown}
	lazy, ok := in.variables[p]
	if !ok {
		lazy = expr.NewLazy(func(name string) (any, error) {
			prog := p.vars[in.tool][name]
			if prog == nil {
				return nil, fmt.Errorf("there is no variable %s", name)
			}
			return prog.EvalRaw(ctx, in.leaveOpen(in.of(ctx, p), prog))
		})
		in.variables[p] = lazy
	}
	in.vars["variables"] = lazy
	return x
}

func agentValue(a Agent) map[string]any {
	return map[string]any{"name": a.Name, "namespace": a.Namespace, "labels": texts(a.Labels), "mode": a.Mode, "depth": a.Depth, "parents": list(a.Parents)}
}

func runValue(c Context) map[string]any {
	r := c.Run
	inputs := r.Inputs
	if inputs == nil {
		inputs = map[string]any{}
	}
	return map[string]any{
		"name": r.Name, "step": 0, "interactive": r.Interactive, "user": r.User, "inputs": inputs, "labels": texts(r.Labels),
		"workspace": filepath.Clean(c.Workspace.Root),
	}
}

func toolValue(t *Tool) map[string]any {
	effects := make([]string, len(t.Effects))
	for i, e := range t.Effects {
		effects[i] = string(e)
	}
	category := t.Category
	if category == "" {
		category = v1alpha1.CategoryOther
	}
	return map[string]any{
		"name": t.Name, "builtin": t.Builtin, "source": t.Source, "risk": levels[t.risk()], "effects": effects,
		"category": string(category), "digest": t.Digest, "contained": t.Contained, "annotations": texts(t.Annotations),
	}
}

func texts(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func (f *facts) cmdValue() map[string]any {
	commands := make([]any, len(f.script.Commands))
	for i, c := range f.script.Commands {
		commands[i] = map[string]any{"name": c.Name, "argv": list(c.Argv), "env": list(c.Env), "wrappers": list(c.Wrappers), "opaque": c.Opaque}
	}
	return map[string]any{
		"commands": commands, "writes": list(f.script.Writes), "reads": list(f.script.Reads), "hosts": list(f.script.Hosts), "variables": list(f.script.Variables),
		"inherited": list(f.script.Inherited),
		"network":   f.script.Network, "dynamic": f.script.Dynamic, "opaque": f.script.Opaque, "reasons": list(f.script.Reasons),
	}
}

func (f *facts) pathsValue() []any {
	out := make([]any, len(f.paths))
	for i, p := range f.paths {
		out[i] = map[string]any{"raw": p.Raw, "clean": p.Clean, "real": p.Real, "inWorkspace": p.InWorkspace, "op": p.Op, "secret": p.Secret, "links": p.Links}
	}
	return out
}

func (f *facts) netValue() map[string]any {
	ports := make([]int, len(f.net.Ports))
	copy(ports, f.net.Ports)
	return map[string]any{"hosts": list(f.net.Hosts), "named": list(f.net.Hosts), "ports": ports, "schemes": list(f.net.Schemes)}
}

func (e *Engine) sessionValue() map[string]any {
	var a Approvals
	if e.context.Approvals != nil {
		a = e.context.Approvals()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	calls := make(map[string]int, len(e.calls))
	maps.Copy(calls, e.calls)
	return map[string]any{"calls": expr.CountsOf(calls), "denials": e.denials, "approvals": map[string]any{"granted": a.Granted, "refused": a.Refused}}
}

func budgetValue(b Budget) map[string]any {
	use := func(u Use) map[string]any { return map[string]any{"used": u.Used, "limit": u.Limit} }
	return map[string]any{"tokens": use(b.Tokens), "steps": use(b.Steps), "seconds": use(b.Seconds), "cost": map[string]any{"used": b.Cost.Used, "limit": b.Cost.Limit}}
}

// describe writes the facts for a person who is asked.
func (in *input) describe(audit []string) json.RawMessage {
	f := in.facts
	out := struct {
		Paths    []Path   `json:"paths,omitempty"`
		Commands []string `json:"commands,omitempty"`
		Network  *network `json:"network,omitempty"`
		Anywhere bool     `json:"anywhere,omitempty"`
		Dynamic  bool     `json:"dynamic,omitempty"`
		Reasons  []string `json:"reasons,omitempty"`
		Opaque   []string `json:"opaque,omitempty"`
		Audit    []string `json:"audit,omitempty"`
	}{Paths: f.paths, Anywhere: in.anywhere, Dynamic: f.script.Dynamic, Reasons: f.script.Reasons, Opaque: f.opaque(), Audit: audit}
	for i := range f.script.Commands {
		out.Commands = append(out.Commands, f.script.Commands[i].line())
	}
	if len(f.net.Hosts) > 0 {
		out.Network = &f.net
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	return b
}

// canonicalJSON writes a value with sorted keys and without white space.
func canonicalJSON(raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return []byte("{}"), nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("text behind the value")
	}
	return json.Marshal(v)
}
