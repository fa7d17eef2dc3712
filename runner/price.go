package runner

import (
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/price"
)

// priced says whether it is known what an answer of the agent's model costs.
func (s *session) priced() bool {
	_, known := price.Of(&s.Model.Spec)
	return known
}

// price returns what the tokens of each model cost. The zero reference stands
// for whoever will answer: that is the dearest of those that may.
func (s *session) price() func(message.ModelRef, message.Usage) (message.Cost, bool) {
	known := map[string]v1alpha1.Pricing{}
	for _, m := range s.everyModel() {
		if p, ok := price.Of(&m.Spec); ok {
			known[m.Name] = p
		}
	}
	of := func(name string, u message.Usage) (message.Cost, bool) {
		p, ok := known[name]
		if !ok {
			return 0, false
		}
		cost, err := model.Cost(p, u)
		return cost, err == nil
	}
	return func(by message.ModelRef, u message.Usage) (message.Cost, bool) {
		if by != (message.ModelRef{}) {
			return of(by.Name, u)
		}
		most, ok := of(s.Model.Name, u)
		for _, m := range s.Fallbacks {
			// One whose price is not known is not turned to.
			if cost, priced := of(m.Name, u); ok && priced {
				most = max(most, cost)
			}
		}
		return most, ok
	}
}
