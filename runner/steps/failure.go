package steps

import (
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// mostSaid is how much of a result is in the error of its step.
const mostSaid = 300

// failure is why a step ends the plan; nil if all of its calls have succeeded.
func (c *Conversation) failure(i int, calls []*message.ToolPart) error {
	for _, call := range calls {
		if call.Result == nil || errorOf(call.Result) == "" {
			continue
		}
		why := strings.TrimSpace(call.Result.Text)
		if len(why) > mostSaid {
			why = strings.ToValidUTF8(why[:mostSaid], "") + "…"
		}
		const format = "%s: step %s: the call of %s was refused: %s"
		switch unanswered := call.Approval == message.Unanswered || call.Approval == message.Expired; {
		case unanswered:
			return reason.New(reason.ApprovalRequired, format, c.title(), c.label(i), call.Tool, why).
				WithHint("answer with --approve or at a terminal, or set spec.approvals.onAsk of the agent")
		case call.Result.Code == message.CodeDenied, call.Result.Code == message.CodeRejected:
			return reason.New(reason.Denied, format, c.title(), c.label(i), call.Tool, why).
				WithHint("agentctl policy explain shows the rule; onError: Continue lets the plan go on without the step")
		}
		return reason.New(reason.ToolError, "%s: step %s: the call of %s has failed: %s", c.title(), c.label(i), call.Tool, why).
			WithHint("agentctl events shows its output; onError: Continue lets the plan go on after a failure of the step")
	}
	return nil
}
