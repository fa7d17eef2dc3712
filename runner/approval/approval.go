// Package approval asks a person about a call, or answers as was declared.
//
// An approver is consulted only when the policy asks: what it denies never
// comes here, so no answer can lift a deny.
package approval

import (
	"context"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Approver answers questions. It is what the loop asks.
type Approver interface {
	Ask(ctx context.Context, q message.Question) (message.Answer, error)
}

// Options are what an approver works with.
type Options struct {
	// OnAsk and Timeout as the agent declares them; empty is Deny and 10 minutes.
	OnAsk   v1alpha1.OnAsk
	Timeout time.Duration
	// Agent is the name of the agent whose calls are asked about.
	Agent string
	// Of names a subagent that asks on the terminal of the run above it; "" is the run's
	// own agent.
	Of string
	// Terminal to ask on; nil when stdin or stderr is not a terminal.
	Terminal *Terminal
	// Remote lets people answer from outside; nil when they cannot.
	Remote *Remote
}

// defaultTimeout of a question, as the API declares it.
const defaultTimeout = 10 * time.Minute

// All approves every call that is asked about; one that cannot be undone only
// with R3, and never one that may have happened already: what was declared
// beforehand was said of the first time.
type All struct{ R3 bool }

// Ask approves.
func (a All) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	if err := ctx.Err(); err != nil {
		return message.Answer{}, context.Cause(ctx)
	}
	if q.Unknown {
		return message.Answer{State: message.Unanswered, By: "--approve all", Reason: "a call that may have happened already is repeated only when a person says so"}, nil
	}
	switch q.Decision.Risk {
	case "R0", "R1", "R2":
		return message.Answer{State: message.Approved, By: "--approve all"}, nil
	case "R3":
		if a.R3 {
			return message.Answer{State: message.Approved, By: "--approve all,R3"}, nil
		}
	}
	return message.Answer{State: message.Unanswered, By: "--approve all", Reason: "a call that cannot be undone needs --approve all,R3 or a person"}, nil
}
