package steps

import (
	"fmt"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Demand returns what reports why a person must approve a call of a plan; "" for a call
// that needs no approval of the plan. A call whose step is not known needs one, where any
// step does.
func Demand(skill string, plan *v1alpha1.SkillPlan) func(message.ToolCall) string {
	some := false
	for i := range plan.Steps {
		some = some || plan.Steps[i].Approval
	}
	if !some {
		return nil
	}
	return func(call message.ToolCall) string {
		i, ok := stepOf(call.ID)
		switch {
		case !ok || i < 0 || i >= len(plan.Steps):
			return fmt.Sprintf("the plan of skill %q has steps that ask for an approval", skill)
		case !plan.Steps[i].Approval:
			return ""
		}
		return fmt.Sprintf("step %s of the plan of skill %q asks for an approval", Label(plan.Steps, i), skill)
	}
}
