package steps

import (
	"encoding/json"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
)

const intro = `Its plan: make these calls in this order, each after the results of those before it.
- ${...} in args, and when and forEach, are CEL expressions. steps.NAME is the result of an earlier step (ran, output, error, exitCode, data: the output as JSON, items: those of a forEach), inputs are what you were given. Write their values into the call.
- when: leave the step out if it is false. forEach: make the call once for each item.
- approval: ask a person before the call. If a call fails, stop, unless onError is Continue.
`

// Describe is a plan as a model reads it that has loaded its skill.
func Describe(plan *v1alpha1.SkillPlan) string {
	var b strings.Builder
	b.WriteString(intro)
	for i := range plan.Steps {
		s := plan.Steps[i]
		if s.Name == "" {
			s.Name = names(plan.Steps)[i]
		}
		var line strings.Builder
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		if e.Encode(s) == nil { // arguments are JSON, which admission has read
			b.WriteString(line.String())
		}
	}
	if plan.Output != "" {
		b.WriteString("Then answer with: " + plan.Output + "\n")
	}
	return b.String()
}
