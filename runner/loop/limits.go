package loop

import (
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// Limits bound a run. They are checked before the model is asked, with the
// worst case of the next request counted in; 0 is no limit. The wall time is
// the business of the context the loop is given.
type Limits struct {
	// MaxSteps is the number of model calls with tools.
	MaxSteps int
	// MaxTokens bounds input plus output of all steps.
	MaxTokens int64
	// MaxCost in picodollars (1e-12 USD).
	MaxCost int64
	// MaxParallel bounds the calls that run at the same time; at least 1.
	MaxParallel int
	// ReserveOutput is the most a single answer may hold, where it is known.
	ReserveOutput int64
	// Price returns what tokens cost in picodollars; false is an unknown price.
	Price func(message.Usage) (int64, bool)
	// Money writes picodollars as a decimal of dollars.
	Money func(int64) string
}

func (l *Limits) money(pico int64, known bool) *string {
	if !known || l.Money == nil {
		return nil
	}
	s := l.Money(pico)
	return &s
}

// Cost returns the cost of the usage as a decimal of dollars, nil when a price
// is unknown.
func (l *Limits) Cost(u message.Usage) *string {
	if l.Price == nil {
		return nil
	}
	return l.money(l.Price(u))
}

// overLimit says whether the next request may not be sent.
func (l *loop) overLimit() *End {
	next := message.Usage{Input: l.estimate.next(), Output: l.Limits.ReserveOutput}
	if limit := l.Limits.MaxTokens; limit > 0 && l.View.Tokens.Total()+next.Total() > limit {
		return &End{
			Reason:  reason.BudgetExceeded,
			Message: sentence("limits.maxTokens is %d; %d tokens are used and the next request may need %d", limit, l.View.Tokens.Total(), next.Total()),
			Hint:    "raise spec.limits.maxTokens of the agent, or give the agent a smaller task",
		}
	}
	if limit := l.Limits.MaxCost; limit > 0 {
		return l.overCost(limit, next)
	}
	return nil
}

func (l *loop) overCost(limit int64, next message.Usage) *End {
	price := func(message.Usage) (int64, bool) { return 0, false }
	if l.Limits.Price != nil {
		price = l.Limits.Price
	}
	ahead, known := price(next)
	if !known || l.unpriced {
		return &End{
			Reason:  reason.BudgetExceeded,
			Message: "limits.maxCost is set and the price of the model is unknown",
			Hint:    "declare spec.pricing of the Model, or remove spec.limits.maxCost of the agent",
		}
	}
	if l.cost+ahead > limit {
		return &End{
			Reason:  reason.BudgetExceeded,
			Message: sentence("limits.maxCost is %s USD; %s USD are spent and the next request may cost %s USD", l.Limits.Money(limit), l.Limits.Money(l.cost), l.Limits.Money(ahead)),
			Hint:    "raise spec.limits.maxCost of the agent",
		}
	}
	return nil
}

// spend counts an answer.
func (l *loop) spend(u message.Usage) {
	pico, known := l.stepCost(u)
	l.cost += pico
	if !known {
		l.unpriced = true
	}
}

func (l *loop) stepCost(u message.Usage) (int64, bool) {
	if l.Limits.Price == nil {
		return 0, false
	}
	return l.Limits.Price(u)
}

// estimate guesses the tokens of the next request: what the provider counted
// last, plus a quarter of the bytes that were added since.
type estimate struct {
	counted int64
	bytes   int64
}

// add counts what the provider has not counted: an assistant's own text was a
// part of its answer's usage.
func (e *estimate) add(m *message.Message) {
	for _, p := range m.Parts {
		if m.Role == message.RoleUser {
			e.bytes += int64(len(p.Text))
		}
		if p.Tool != nil && p.Tool.Result != nil {
			e.bytes += int64(len(p.Tool.Result.Text))
		}
	}
}

func (e *estimate) saw(u message.Usage) {
	if total := u.Total(); total > 0 {
		e.counted, e.bytes = total, 0
	}
}

func (e *estimate) next() int64 { return e.counted + e.bytes/4 }
