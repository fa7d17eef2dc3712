package execution

import (
	"fmt"
	"sync"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
)

// Budget is what a run and the runs below it may use together. A request of any of them
// is reserved in its own budget and in each above: runs that ask at the same time cannot
// together exceed what one of them may.
type Budget struct {
	// Tokens and Cost are the limits of the run; 0 is no limit.
	tokens int64
	cost   message.Cost
	used   func(read func(*view.Run))
	above  *Budget
	call   string

	// tree guards the reservations and the children of all budgets of a tree.
	tree     *sync.Mutex
	children []*Budget
	// promised is the room that a request in flight may need.
	promised     int64
	promisedCost message.Cost
}

// NewBudget returns the budget of a run at the top of a tree, with its limits. Used
// passes the fold of the run.
func NewBudget(tokens int64, cost message.Cost, used func(read func(*view.Run))) *Budget {
	return &Budget{tokens: tokens, cost: cost, used: used, tree: &sync.Mutex{}}
}

// Child returns the budget of a run that a call of this one starts. When the call has
// ended, what the child has used is in the fold of this run.
func (b *Budget) Child(call string, tokens int64, cost message.Cost, used func(read func(*view.Run))) *Budget {
	c := &Budget{tokens: tokens, cost: cost, used: used, above: b, call: call, tree: b.tree}
	b.tree.Lock()
	defer b.tree.Unlock()
	b.children = append(b.children, c)
	return c
}

// Reserve implements loop.Budget.
func (b *Budget) Reserve(tokens int64, cost *message.Cost) string {
	b.tree.Lock()
	defer b.tree.Unlock()
	b.promised, b.promisedCost = 0, 0
	for a := b.above; a != nil; a = a.above {
		usedTokens, usedCost := a.total()
		if left := a.tokens - usedTokens; a.tokens > 0 && (tokens < 0 || tokens > left) {
			return fmt.Sprintf("limits.maxTokens of a run above is %d; %d tokens are left of it and the next request may need %d", a.tokens, max(0, left), tokens)
		}
		if a.cost == 0 {
			continue
		}
		if cost == nil {
			return "limits.maxCost of a run above is set and the price of the model is unknown"
		}
		if usedCost.Add(*cost) > a.cost {
			return fmt.Sprintf("limits.maxCost of a run above is %s USD; %s USD are spent and the next request may cost %s USD", a.cost, usedCost, *cost)
		}
	}
	b.promised = tokens
	if cost != nil {
		b.promisedCost = *cost
	}
	return ""
}

// Settle implements loop.Budget.
func (b *Budget) Settle() {
	b.tree.Lock()
	defer b.tree.Unlock()
	b.promised, b.promisedCost = 0, 0
}

// total is what the run and its running children have used and reserved. The tree is
// locked.
func (b *Budget) total() (tokens int64, cost message.Cost) {
	tokens, cost = b.promised, b.promisedCost
	running := b.children[:0:0]
	b.used(func(v *view.Run) {
		if t := v.Turn(); t != nil {
			tokens, cost = tokens+t.Tokens.Total()+t.Estimated.Total(), cost.Add(t.Cost)
		}
		for _, c := range b.children {
			if p := v.Call(c.call); p != nil && p.State == message.StateRunning {
				running = append(running, c)
			}
		}
	})
	b.children = running
	for _, c := range running {
		t, m := c.total()
		tokens, cost = tokens+t, cost.Add(m)
	}
	return tokens, cost
}
