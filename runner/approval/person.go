package approval

import (
	"context"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Person answers questions in place of a person, as a test declares it.
//
//	ok     error   the question
//	true   nil     is answered
//	false  nil     is not answered: what the agent declares for that counts, and nobody is
//	               waited for
//	any    non-nil is not answered, and the reason is recorded
type Person interface {
	// Approve answers whether a call of an agent may run.
	Approve(ctx context.Context, agent string, q message.Question) (answer message.Answer, ok bool, err error)
	// Reply answers what a running call of an agent asks.
	Reply(ctx context.Context, agent string, call message.ToolCall, in message.Inquiry) (reply message.Reply, ok bool, err error)
}

// declared asks a Person.
type declared struct {
	person Person
	agent  string
	onAsk  v1alpha1.OnAsk
}

// undeclared is who has not answered a question that a Person leaves open.
const undeclared = "no entry of approvals"

// Ask implements Approver.
func (d declared) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	if err := ctx.Err(); err != nil {
		return message.Answer{}, context.Cause(ctx)
	}
	answer, ok, err := d.person.Approve(ctx, d.agent, q)
	if err != nil || ok {
		return answer, err
	}
	if d.onAsk == v1alpha1.OnAskWait {
		return message.Answer{State: message.Expired, By: undeclared + ", onAsk: Wait", Reason: "nobody answered in time"}, nil
	}
	return Headless{OnAsk: d.onAsk, why: undeclared}.Ask(ctx, q)
}
