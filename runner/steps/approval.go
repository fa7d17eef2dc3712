package steps

import (
	"encoding/json"
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
		return fmt.Sprintf("step %s of the plan of skill %q asks for an approval%s", Label(plan.Steps, i), skill, shown(call))
	}
}

// shown is how a person reads what a call would take over of another run; "" for any other
// call. The run in the arguments is the one that is taken over, whatever the plan calls it.
func shown(call message.ToolCall) string {
	var args struct{ Run string }
	if call.Tool != mergeTool || json.Unmarshal(call.Args, &args) != nil || args.Run == "" {
		return ""
	}
	return "; agentctl diff " + args.Run + " shows the change"
}

// mergeTool is the shipped tool that takes over what a subagent has changed in a copy.
const mergeTool = "task_apply"
