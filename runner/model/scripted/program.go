package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/model"
)

// Program is a script with its expressions. They are compiled when they are
// first needed: a run that takes one step pays for one. It may be shared by
// conversations, and by the check at admission and the run after it.
type Program struct {
	script *v1alpha1.Script
	env    func() (*expr.Env, error)

	mu    sync.Mutex
	whens map[string]*expr.Program
	exprs map[string]*expr.Program
}

// NewProgram wraps a script; nil is a script without steps.
func NewProgram(script *v1alpha1.Script) *Program {
	if script == nil {
		script = &v1alpha1.Script{}
	}
	return &Program{
		script: script, env: sync.OnceValues(newEnv),
		whens: map[string]*expr.Program{}, exprs: map[string]*expr.Program{},
	}
}

func newEnv() (*expr.Env, error) {
	last := expr.NewObject("last",
		expr.Field{Name: "tool", Type: expr.String}, expr.Field{Name: "output", Type: expr.String},
		expr.Field{Name: "exitCode", Type: expr.Int}, expr.Field{Name: "error", Type: expr.String})
	return expr.NewEnv(
		expr.Var{Name: "turn", Type: expr.Int}, expr.Var{Name: "prompt", Type: expr.String},
		expr.Var{Name: "inputs", Type: expr.Map(expr.Dyn)}, expr.Var{Name: "last", Type: last})
}

// Check returns every mistake in a script, with paths such as
// spec.scripted.steps[2].when.
func Check(script *v1alpha1.Script) []model.Problem { return NewProgram(script).Check() }

// Check compiles everything and returns every mistake.
func (p *Program) Check() []model.Problem {
	var problems []model.Problem
	bad := func(path string, err error) {
		problems = append(problems, model.Problem{Path: path, Message: err.Error()})
	}
	// Here a text is not evaluated: only its expressions are checked.
	inspect := func(path, text string) (string, error) {
		segments, err := parse(text)
		if err != nil {
			bad(path, err)
		}
		for _, s := range segments {
			if !s.expr {
				continue
			}
			if _, err := p.any(s.text); err != nil {
				bad(path, fmt.Errorf("${%s}: %w", s.text, err))
			}
		}
		return text, nil
	}
	for i, step := range p.script.Steps {
		at := stepPath(i)
		if step.When != "" {
			if _, err := p.when(step.When); err != nil {
				bad(at+".when", err)
			}
		}
		_, _ = inspect(at+".reasoning", step.Reasoning) // inspect reports by itself
		_, _ = inspect(at+".say", step.Say)
		for k, c := range step.Calls {
			path := callPath(i, k)
			if c.Tool == "" {
				bad(path+".tool", fmt.Errorf("must be the name of a tool"))
			}
			if _, err := rewriteArgs(c.Args, path+".args", inspect); err != nil {
				bad(path+".args", err)
			}
		}
	}
	return problems
}

func stepPath(i int) string    { return "spec.scripted.steps[" + strconv.Itoa(i) + "]" }
func callPath(i, k int) string { return stepPath(i) + ".calls[" + strconv.Itoa(k) + "]" }

// when compiles a condition, once.
func (p *Program) when(src string) (*expr.Program, error) {
	return p.compile(p.whens, src, (*expr.Env).Bool)
}

// any compiles an expression of any type, once.
func (p *Program) any(src string) (*expr.Program, error) {
	return p.compile(p.exprs, src, (*expr.Env).Any)
}

func (p *Program) compile(known map[string]*expr.Program, src string, how func(*expr.Env, string) (*expr.Program, error)) (*expr.Program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if prog, ok := known[src]; ok {
		return prog, nil
	}
	env, err := p.env()
	if err != nil {
		return nil, err
	}
	prog, err := how(env, src)
	if err != nil {
		return nil, err
	}
	known[src] = prog
	return prog, nil
}

// holds reports whether a step may be taken.
func (p *Program) holds(ctx context.Context, i int, vars map[string]any) (bool, error) {
	src := p.script.Steps[i].When
	if src == "" {
		return true, nil
	}
	prog, err := p.when(src)
	if err != nil {
		return false, fmt.Errorf("%s.when: %s: %w", stepPath(i), src, err)
	}
	truth, err := prog.EvalBool(ctx, expr.Input{Vars: vars, Large: true})
	if err != nil {
		return false, fmt.Errorf("%s.when: %s: %w", stepPath(i), src, err)
	}
	return truth == expr.True, nil
}

// render replaces the expressions of a text.
func (p *Program) render(ctx context.Context, path, text string, vars map[string]any) (string, error) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	segments, err := parse(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	var b strings.Builder
	for _, s := range segments {
		if !s.expr {
			b.WriteString(s.text)
			continue
		}
		prog, err := p.any(s.text)
		if err != nil {
			return "", fmt.Errorf("%s: ${%s}: %w", path, s.text, err)
		}
		v, err := prog.Eval(ctx, vars)
		if err != nil {
			return "", fmt.Errorf("%s: ${%s}: %w", path, s.text, err)
		}
		word, err := textOf(v)
		if err != nil {
			return "", fmt.Errorf("%s: ${%s}: %w", path, s.text, err)
		}
		b.WriteString(word)
	}
	return b.String(), nil
}

// textOf is a value as part of a text: strings as they are, lists and maps as JSON.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	case time.Duration:
		return v.String(), nil
	}
	b, err := encode(v)
	return string(b), err
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// rewriteArgs returns the arguments of a call with every string value, however
// deep, as rewrite returns it. The value stays a string even where it is one
// expression and nothing else: arguments would otherwise change their type with
// the data. Names of members are left alone.
func rewriteArgs(args *v1alpha1.JSON, path string, rewrite func(path, text string) (string, error)) (string, error) {
	if args == nil || len(args.Raw) == 0 {
		return "{}", nil
	}
	d := json.NewDecoder(bytes.NewReader(args.Raw))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil || v == nil {
		return "", fmt.Errorf("must be an object")
	}
	out, err := rewriteValue(v, path, rewrite)
	if err != nil {
		return "", err
	}
	b, err := encode(out)
	return string(b), err
}

func rewriteValue(v any, path string, rewrite func(path, text string) (string, error)) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return rewrite(path, v)
	case []any:
		for i := range v {
			if v[i], err = rewriteValue(v[i], path+"["+strconv.Itoa(i)+"]", rewrite); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if v[k], err = rewriteValue(v[k], path+"."+k, rewrite); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
