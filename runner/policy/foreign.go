package policy

import (
	"errors"
	"fmt"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/expr"
)

// BoundPatterns counts the regular expressions of a policy that nobody has looked at, before
// it is compiled. With a problem it must not be compiled.
func BoundPatterns(p *v1alpha1.Policy, left *expr.Patterns) (problems []Problem) {
	take := func(path, src string) {
		if src == "" {
			return
		}
		s, err := expr.Parse(src)
		if err != nil {
			return // its compilation ends there too, with the same error
		}
		if err := left.Take(s); err != nil {
			pr := Problem{Path: path, Message: err.Error()}
			if at, ok := errors.AsType[*expr.Error](err); ok {
				pr.Line, pr.Col, pr.Message, pr.Suggestion = at.Line, at.Col, at.Message, at.Suggestion
			}
			problems = append(problems, pr)
		}
	}
	for i, v := range p.Spec.Variables {
		take(fmt.Sprintf("spec.variables[%d].expression", i), v.Expression)
	}
	for i := range p.Spec.Rules {
		r := &p.Spec.Rules[i]
		take(fmt.Sprintf("spec.rules[%d].when", i), r.When)
		take(fmt.Sprintf("spec.rules[%d].messageExpression", i), r.MessageExpression)
	}
	return problems
}
