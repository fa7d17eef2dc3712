package runner

import (
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/provider"
)

// priced says whether it is known what an answer of the agent's model costs.
func (s *session) priced() bool {
	_, known := provider.All().Price(&s.Model.Spec)
	return known
}

// price returns what the tokens of each model cost. The zero reference stands
// for whoever will answer: that is the dearest of those that may.
func (s *session) price() func(message.ModelRef, message.Usage) (message.Cost, bool) {
	return s.priceAt(s.prices())
}

// prices are those of the models, as far as they are known.
func (p *plan) prices() map[string]model.Price {
	known := map[string]model.Price{}
	for _, m := range p.everyModel() {
		if p, ok := provider.All().Price(&m.Spec); ok {
			known[m.Name] = p
		}
	}
	return known
}

// priceAt is price at known prices.
func (p *plan) priceAt(known map[string]model.Price) func(message.ModelRef, message.Usage) (message.Cost, bool) {
	return func(by message.ModelRef, u message.Usage) (message.Cost, bool) {
		if by != (message.ModelRef{}) {
			p, ok := known[by.Name]
			if !ok {
				return 0, false
			}
			cost, err := p.Cost(u)
			return cost, err == nil
		}
		most, ok := mostOf(known, p.Model.Name, u)
		for _, m := range p.Fallbacks {
			// One whose price is not known is not turned to.
			if cost, priced := mostOf(known, m.Name, u); ok && priced {
				most = max(most, cost)
			}
		}
		return most, ok
	}
}

// mostOf is the most that an answer of a model can cost.
func mostOf(known map[string]model.Price, name string, u message.Usage) (message.Cost, bool) {
	p, ok := known[name]
	if !ok {
		return 0, false
	}
	cost, err := p.Most(u)
	return cost, err == nil
}
