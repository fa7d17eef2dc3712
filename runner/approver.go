package runner

import (
	"context"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/loop"
)

type tmpApprover struct{ all bool }

func (a tmpApprover) Ask(context.Context, message.Question) (message.Answer, error) {
	if a.all {
		return message.Answer{State: message.Approved, By: "all"}, nil
	}
	return message.Answer{State: message.Unanswered, By: "onAsk: Deny"}, nil
}

func (s *session) approver() (loop.Approver, error) {
	return tmpApprover{s.opts.Approve == "all"}, nil
}
