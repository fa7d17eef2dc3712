package loop

import (
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// Limits bound a turn of a run. They are checked before the model is asked, with the
// worst case of the next request counted in; 0: no limit. The wall time is
// bounded by the context that the loop is given.
type Limits struct {
	// MaxSteps is the number of model calls with tools.
	MaxSteps int
	// MaxTokens bounds input plus output of all steps.
	MaxTokens int64
	// MaxCost of all steps.
	MaxCost message.Cost
	// MaxParallel bounds the calls that run at the same time; at least 1.
	MaxParallel int
	// ReserveOutput is the most tokens that a single answer may have, over all
	// models that may answer, where it is known.
	ReserveOutput int64
	// Price returns what a model's tokens cost; false: the price is unknown. The
	// zero ModelRef is whichever model will answer.
	Price func(message.ModelRef, message.Usage) (message.Cost, bool)
	// Budget is shared with the run that has started this one; nil: there is none.
	Budget Budget
}

// cost returns what the usage cost, nil when a price is unknown.
func (l *Limits) cost(by message.ModelRef, u message.Usage) *message.Cost {
	if l.Price == nil {
		return nil
	}
	c, known := l.Price(by, u)
	if !known {
		return nil
	}
	return &c
}

// overLimit reports whether the next request may not be sent.
func (l *loop) overLimit() *End {
	return l.overBudget(message.ModelRef{}, message.Usage{Input: l.estimate.next(), Output: l.Limits.ReserveOutput})
}

// overBudget reports whether a request that may use so much may not be sent to
// a model; the zero ModelRef is the agent's.
func (l *loop) overBudget(by message.ModelRef, next message.Usage) *End {
	turn := l.View.Turn()
	used := turn.Tokens.Total() + turn.Estimated.Total() + l.lost.Total()
	if limit := l.Limits.MaxTokens; limit > 0 && beyond(limit, used, next) {
		return &End{
			Reason:  reason.BudgetExceeded,
			Message: sentence("limits.maxTokens is %d; %d tokens are used and the next request may need %d", limit, used, next.Total()),
			Hint:    "raise spec.limits.maxTokens of the agent, lower spec.parameters.maxOutputTokens of the Model, or give the agent a smaller task",
		}
	}
	if limit := l.Limits.MaxCost; limit > 0 {
		if end := l.overCost(limit, by, next); end != nil {
			return end
		}
	}
	return l.overShared(by, next)
}

// overShared reserves a request in the budget of the runs above this one.
func (l *loop) overShared(by message.ModelRef, next message.Usage) *End {
	if l.Limits.Budget == nil {
		return nil
	}
	ahead := l.Limits.cost(by, next)
	if ahead != nil && l.View.Turn().Unpriced {
		ahead = nil
	}
	if why := l.Limits.Budget.Reserve(next.Total(), ahead); why != "" {
		return &End{
			Reason: reason.BudgetExceeded, Message: why,
			Hint: "raise spec.limits of the agent at the top, or give its subagents smaller tasks",
		}
	}
	return nil
}

// beyond reports whether a limit has no room for a request. The tokens
// requested for an answer may overflow the count.
func beyond(limit, used int64, next message.Usage) bool {
	needs := next.Total()
	return needs < 0 || needs > limit-used
}

func (l *loop) overCost(limit message.Cost, by message.ModelRef, next message.Usage) *End {
	turn := l.View.Turn()
	ahead, spent := l.Limits.cost(by, next), turn.Cost
	if ahead == nil || turn.Unpriced {
		return &End{
			Reason:  reason.BudgetExceeded,
			Message: "limits.maxCost is set and the price of the model is unknown",
			Hint:    "declare spec.pricing of the Model, or remove spec.limits.maxCost of the agent",
		}
	}
	if guess := l.Limits.cost(message.ModelRef{}, turn.Estimated.Add(l.lost)); guess != nil {
		spent = spent.Add(*guess)
	}
	if spent.Add(*ahead) > limit {
		return &End{
			Reason:  reason.BudgetExceeded,
			Message: sentence("limits.maxCost is %s USD; %s USD are spent and the next request may cost %s USD", limit, spent, *ahead),
			Hint:    "raise spec.limits.maxCost of the agent, lower spec.parameters.maxOutputTokens of the Model, or give the agent a smaller task",
		}
	}
	return nil
}

// lostRequests estimates the cost of the requests whose answer was lost because
// the process died: their input was read, and may be paid for. The next process
// has sent the same request again, so its count is used for the lost one; next
// is the estimate of a request that is still to be sent. Otherwise every crash
// would reset the budget.
func lostRequests(messages []*message.Message, next int64) (lost message.Usage) {
	void := int64(0)
	for _, m := range messages {
		switch {
		case m.Role != message.RoleAssistant || m.Summary:
		case m.Error == message.Void:
			void++
		case m.Error == "" && !m.Open():
			input := m.Usage.Total() - m.Usage.Output
			if m.Estimate != nil {
				input = m.Estimate.Input
			}
			lost.Input, void = lost.Input+void*max(0, input), 0
		}
	}
	lost.Input += void * next
	return lost
}

// uncounted is a warning, reported once in a run. Recordings are searched for
// its beginning.
const uncounted = "the model's provider does not say how many tokens an answer took: " +
	"the tokens and the cost of the run are not known, and its limits count an estimate"

// guess estimates an answer that the provider has not counted, nil when it has:
// taken for nothing, no budget would ever end the run. Asked is the estimate of
// its request.
func (l *loop) guess(asked int64, out *message.Output) *message.Usage {
	if !out.Uncounted || out.Usage.Total() > 0 {
		return nil
	}
	answered := len(out.Text) + len(out.Reasoning)
	for _, c := range out.Calls {
		answered += len(c.Tool) + len(c.Args)
	}
	return &message.Usage{Input: asked, Output: l.estimate.tokens(int64(answered))}
}
