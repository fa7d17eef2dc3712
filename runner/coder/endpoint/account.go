package endpoint

import (
	"agentctl.dev/agentctl/api/message"
)

// reserve asks the budget for the room that a request may need, beside those in flight.
func (e *Endpoint) reserve(u message.Usage) (release func(), why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	most, known := message.Cost(0), false
	if e.o.Price != nil {
		_, most, known = e.o.Price(u)
	}
	all, cost := e.flying+u.Total(), e.flyingCost+most
	asked := &cost
	if !known {
		asked = nil
	}
	if why := e.o.Reserve(all, asked); why != "" {
		e.refused = why
		if e.flying > 0 { // those in flight keep theirs
			before := e.flyingCost
			_ = e.o.Reserve(e.flying, &before)
		}
		return nil, why
	}
	e.flying, e.flyingCost, e.refused = all, cost, ""
	e.requests++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.flying, e.flyingCost = e.flying-u.Total(), e.flyingCost-most; e.flying <= 0 {
			e.o.Settle()
		} else {
			left := e.flyingCost
			_ = e.o.Reserve(e.flying, &left) // less than was granted
		}
	}, ""
}

// used reports what an answer has used.
func (e *Endpoint) used(c *counter, estimate message.Usage) {
	u := Use{Tokens: c.usage}
	if !c.counted {
		u.Tokens, u.Estimated = message.Usage{Input: estimate.Input, Output: tokens(c.bytes)}, true
	}
	if c.cut { // its count may be that of the beginning
		u.Tokens.Output, u.Estimated = max(u.Tokens.Output, tokens(c.bytes)), true
		if !c.stream { // the server has made all of it
			u.Tokens.Output = max(u.Tokens.Output, estimate.Output)
		}
	}
	if e.o.Price != nil {
		if cost, most, known := e.o.Price(u.Tokens); known {
			if u.Estimated {
				cost = most
			}
			u.Cost = &cost
		}
	}
	e.o.Used(u)
}
