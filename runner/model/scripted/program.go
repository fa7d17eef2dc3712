package scripted

import (
	"context"
	"fmt"
	"strconv"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/model"
)

// Program is a script with its expressions. They are compiled when they are
// first needed: a run that takes one step pays for one. It may be shared by
// conversations, and by the check at admission and the run after it.
type Program struct {
	script *v1alpha1.Script
	set    *expr.Texts
}

// NewProgram wraps a script; nil is a script without steps.
func NewProgram(script *v1alpha1.Script) *Program {
	if script == nil {
		script = &v1alpha1.Script{}
	}
	return &Program{script: script, set: expr.NewTexts(newEnv)}
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
	inspect := func(path, text string) (any, error) {
		p.set.Inspect(text, func(err error) { bad(path, err) }, nil)
		return text, nil
	}
	for i, step := range p.script.Steps {
		at := stepPath(i)
		if step.When != "" {
			if _, err := p.set.Bool(step.When); err != nil {
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
			if _, err := expr.FillArgs(rawArgs(&c), path+".args", inspect); err != nil {
				bad(path+".args", err)
			}
		}
	}
	return problems
}

func stepPath(i int) string    { return "spec.scripted.steps[" + strconv.Itoa(i) + "]" }
func callPath(i, k int) string { return stepPath(i) + ".calls[" + strconv.Itoa(k) + "]" }

// holds reports whether a step may be taken.
func (p *Program) holds(ctx context.Context, i int, vars map[string]any) (bool, error) {
	src := p.script.Steps[i].When
	if src == "" {
		return true, nil
	}
	prog, err := p.set.Bool(src)
	if err != nil {
		return false, fmt.Errorf("%s.when: %s: %w", stepPath(i), src, err)
	}
	truth, err := prog.EvalBool(ctx, expr.Input{Vars: vars, Large: true})
	if err != nil {
		return false, fmt.Errorf("%s.when: %s: %w", stepPath(i), src, err)
	}
	return truth == expr.True, nil
}

// rawArgs are those of a call as JSON text or nothing.
func rawArgs(c *v1alpha1.ScriptCall) []byte {
	if c.Args == nil {
		return nil
	}
	return c.Args.Raw
}
