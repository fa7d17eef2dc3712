package admission

import (
	"context"
	"errors"

	"agentctl.dev/agentctl/runner/expr"
	"agentctl.dev/agentctl/runner/manifest"
)

// expressions checks everything that has to be compiled as CEL.
func (a *admitter) expressions(docs []*manifest.Document) {
	rules := ruleSet{}
	for _, d := range docs {
		for _, v := range d.Validations {
			if d.Faulty(v.Field) {
				continue
			}
			holds, err := rules.hold(v)
			switch {
			case err != nil && d.Broken: // what the rule reads has been taken out
			case err != nil:
				a.add(d.KeyErrorf(v.Field, "the rule %q of the schema cannot be evaluated: %v", v.Rule, err))
			case !holds:
				a.add(d.KeyErrorf(v.Field, "%s", v.Message))
			}
		}
	}
}

// ruleSet keeps the compiled rules of the schemas; objects of a kind share them.
type ruleSet map[string]*expr.Program

// hold evaluates a rule over self. CRD rules are part of this program, so they
// are not checked against a type, only against values.
func (r ruleSet) hold(v manifest.Validation) (bool, error) {
	prog := r[v.Rule]
	if prog == nil {
		env, err := expr.NewEnv(expr.Var{Name: "self", Type: expr.Dyn})
		if err != nil {
			return false, err
		}
		if prog, err = env.Bool(v.Rule); err != nil {
			return false, err
		}
		r[v.Rule] = prog
	}
	// The evaluation has its own deadline and cost bound.
	truth, err := prog.EvalBool(context.Background(), expr.Input{Vars: map[string]any{"self": v.Self}})
	if err != nil {
		return false, err
	}
	if truth == expr.Unknown {
		return false, errors.New("its value is unknown")
	}
	return truth == expr.True, nil
}
