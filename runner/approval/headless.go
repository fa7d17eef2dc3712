package approval

import (
	"context"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Headless answers when no person can be asked, as the agent declares it: Deny at once, Wait
// until the question expires, Suspend the run.
type Headless struct {
	OnAsk   v1alpha1.OnAsk
	Timeout time.Duration
	// why no person can be asked, besides --approve never.
	why string
}

// Ask never approves.
func (n Headless) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	by := "--approve never"
	if n.why != "" {
		by = n.why
	}
	switch n.OnAsk {
	case v1alpha1.OnAskSuspend:
		return message.Answer{State: message.Unanswered, By: by + ", onAsk: Suspend", Reason: "the run waits for an approval", Suspend: true}, ctx.Err()
	case v1alpha1.OnAskDeny:
	case v1alpha1.OnAskWait:
		wait := n.Timeout
		if q.ExpiresAt > 0 { // the question may have waited in an earlier process
			wait = min(wait, time.Until(time.UnixMilli(q.ExpiresAt)))
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return message.Answer{}, context.Cause(ctx)
		case <-timer.C:
			return message.Answer{State: message.Expired, By: by + ", onAsk: Wait", Reason: "nobody answered in time"}, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return message.Answer{}, context.Cause(ctx)
	}
	return message.Answer{State: message.Unanswered, By: by + ", onAsk: Deny", Reason: "nobody is there to approve the call"}, nil
}
