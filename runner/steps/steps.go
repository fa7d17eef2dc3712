// Package steps carries out the plan of a skill: it computes the calls of each step from the results of earlier ones.
//
// A plan takes the place of a model in the loop. Its calls are judged, approved, recorded,
// resumed and replayed as those of a model are, and no second way to run a call exists.
package steps

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/model"
)

// MaxItems bounds the list of a forEach: they are the calls of one answer.
const MaxItems = 128

// program is a plan with its expressions.
type program struct {
	plan *v1alpha1.SkillPlan
	// names are those by which results are read; "" for a step without one.
	names []string
	// set has the expressions of the plan, each those of steps with a forEach, which read
	// item and index.
	set, each *expr.Texts
	inputs    expr.Type
}

func newProgram(plan *v1alpha1.SkillPlan) *program {
	p := &program{plan: plan, names: names(plan.Steps), inputs: expr.Map(expr.Dyn)}
	if plan.Inputs != nil {
		if t, err := expr.FromSchema("Inputs", plan.Inputs.Schema.Raw); err == nil { // else it is a mistake in the schema
			p.inputs = t
		}
	}
	vars := []expr.Var{{Name: "steps", Type: p.results()}, {Name: "inputs", Type: p.inputs}}
	p.set = expr.NewTexts(func() (*expr.Env, error) { return expr.NewEnv(vars...) })
	p.each = expr.NewTexts(func() (*expr.Env, error) {
		return expr.NewEnv(append(slices.Clone(vars), expr.Var{Name: "item", Type: expr.Dyn}, expr.Var{Name: "index", Type: expr.Int})...)
	})
	return p
}

// names are those of the results. A step without a name has that of its tool, unless
// another step could be meant.
func names(steps []v1alpha1.SkillStep) []string {
	called := map[string]int{}
	for _, s := range steps {
		if s.Name == "" {
			called[s.Tool]++
		} else {
			called[s.Name] += 2
		}
	}
	all := make([]string, len(steps))
	for i, s := range steps {
		switch {
		case s.Name != "":
			all[i] = s.Name
		case called[s.Tool] == 1 && expr.Identifier(s.Tool) == s.Tool && !Reserved(s.Tool):
			all[i] = s.Tool
		}
	}
	return all
}

// Reserved reports whether CEL reads a name as something other than a field.
func Reserved(name string) bool {
	return slices.Contains([]string{"true", "false", "null", "in"}, name)
}

// results is the type of the variable steps.
func (p *program) results() expr.Type {
	result := []expr.Field{
		{Name: "ran", Type: expr.Bool},
		{Name: "output", Type: expr.String},
		{Name: "error", Type: expr.String},
		{Name: "exitCode", Type: expr.Int},
		{Name: "data", Type: expr.Dyn},
	}
	one := expr.NewObject("result", result...)
	item := expr.NewObject("result of an item", append(slices.Clone(result), expr.Field{Name: "item", Type: expr.Dyn})...)
	all := expr.NewObject("results",
		expr.Field{Name: "ran", Type: expr.Bool},
		expr.Field{Name: "error", Type: expr.String},
		expr.Field{Name: "items", Type: expr.List(item).Max(MaxItems)})
	var fields []expr.Field
	for i, name := range p.names {
		switch {
		case name == "":
		case p.plan.Steps[i].ForEach != "":
			fields = append(fields, expr.Field{Name: name, Type: all})
		default:
			fields = append(fields, expr.Field{Name: name, Type: one})
		}
	}
	return expr.NewObject("steps", fields...)
}

// Label names a step for people.
func Label(steps []v1alpha1.SkillStep, i int) string {
	if name := names(steps)[i]; name != "" {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%d (%s)", i+1, steps[i].Tool)
}

// Path is where a step is in the manifest of its skill.
func Path(i int) string { return "spec.plan.steps[" + strconv.Itoa(i) + "]" }

// Check returns every mistake in a plan that its schema cannot express, with paths such as
// spec.plan.steps[2].when.
func Check(plan *v1alpha1.SkillPlan) []model.Problem {
	c := checker{program: newProgram(plan)}
	for i := range plan.Steps {
		c.step(i)
	}
	c.set.Inspect(plan.Output, func(err error) { c.bad("spec.plan.output", err) }, c.reads("spec.plan.output", len(plan.Steps)))
	return c.problems
}

type checker struct {
	*program
	problems []model.Problem
}

func (c *checker) bad(path string, err error) {
	c.problems = append(c.problems, model.Problem{Path: path, Message: err.Error()})
}

// step checks the expressions of one step.
func (c *checker) step(i int) {
	s, at, set := &c.plan.Steps[i], Path(i), c.set
	if s.When != "" {
		if prog, err := c.set.Bool(s.When); err != nil {
			c.bad(at+".when", err)
		} else {
			c.reads(at+".when", i)(prog)
		}
	}
	if s.ForEach != "" {
		set = c.each
		prog, err := c.set.Any(s.ForEach)
		switch {
		case err != nil:
			c.bad(at+".forEach", err)
		case !isList(prog.Output()):
			c.bad(at+".forEach", fmt.Errorf("must be a list, this is %s", prog.Output().Name()))
		default:
			c.reads(at+".forEach", i)(prog)
		}
	}
	_, err := expr.FillArgs(rawArgs(s), at+".args", func(path, text string) (any, error) {
		set.Inspect(text, func(err error) { c.bad(path, err) }, c.reads(path, i))
		return text, nil
	})
	if err != nil {
		c.bad(at+".args", err)
	}
}

// reads returns a check that an expression of step i reads only results that are there.
func (c *checker) reads(path string, i int) func(*expr.Program) {
	return func(prog *expr.Program) {
		for _, name := range prog.Fields("steps") {
			switch at := slices.Index(c.names, name); {
			case at == i:
				c.problems = append(c.problems, model.Problem{
					Path: path, Message: fmt.Sprintf("step %s reads its own result", Label(c.plan.Steps, i)), Advice: "a step reads the results of steps before it",
				})
			case at > i:
				c.problems = append(c.problems, model.Problem{
					Path: path, Message: fmt.Sprintf("step %s reads the result of step %q, which comes later", Label(c.plan.Steps, i), name),
					Advice: "a step reads the results of steps before it: change their order",
				})
			}
		}
	}
}

func rawArgs(s *v1alpha1.SkillStep) json.RawMessage {
	if s.Args == nil {
		return nil
	}
	return s.Args.Raw
}

// isList reports whether a value of a type can be a list.
func isList(t expr.Type) bool {
	return t.Name() == expr.Dyn.Name() || strings.HasPrefix(t.Name(), "list")
}
