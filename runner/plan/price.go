package plan

import (
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
)

// Priced reports whether it is known what an answer of the agent's model costs.
func (p *Plan) Priced() bool {
	_, known := p.registries.Providers.Price(&p.Model.Spec)
	return known
}

// Prices are those of the models, by name, as far as they are known.
func (p *Plan) Prices() map[string]model.Price {
	known := map[string]model.Price{}
	for _, m := range p.Models() {
		if price, ok := p.registries.Providers.Price(&m.Spec); ok {
			known[m.Name] = price
		}
	}
	return known
}

// PriceAt returns what the tokens of each model cost at some prices. The zero reference
// is the model that will answer: the most expensive of those that may.
func (p *Plan) PriceAt(known map[string]model.Price) func(message.ModelRef, message.Usage) (message.Cost, bool) {
	return func(by message.ModelRef, u message.Usage) (message.Cost, bool) {
		if by != (message.ModelRef{}) {
			price, ok := known[by.Name]
			if !ok {
				return 0, false
			}
			cost, err := price.Cost(u)
			return cost, err == nil
		}
		most, ok := mostOf(known, p.Model.Name, u)
		for _, m := range p.Fallbacks {
			// A model whose price is not known is not used as a fallback.
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
