package policy

import (
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// ruleDemand asks about a call that no policy asks about.
const ruleDemand = "default/planApproval"

// demand turns the outcome of a call into a question where the context demands one. A
// denial stays, and so does a question of a rule; neither can be answered for later calls.
// What was approved before does not answer it, and the approval opens no path outside the
// workspace that the policies do not open.
func (e *Engine) demand(call message.ToolCall, o *outcome) (demanded bool) {
	if e.context.Demand == nil || o.action == v1alpha1.ActionDeny || strings.HasSuffix(call.ID, declaredID) {
		return false
	}
	why := e.context.Demand(call)
	if why == "" {
		return false
	}
	if o.action != v1alpha1.ActionAsk {
		o.action, o.rule, o.message = v1alpha1.ActionAsk, ruleDemand, why
	}
	return true
}
