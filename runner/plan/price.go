package plan

import (
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model"
)

// Priced reports whether it is known what an answer of the agent's model costs.
func (m Models) Priced() bool {
	_, known := m.providers.Price(&m.own.Spec)
	return known
}

// Prices are those of the models, by name, as far as they are known.
func (m Models) Prices() map[string]model.Price {
	known := map[string]model.Price{}
	for _, one := range m.All() {
		if price, ok := m.providers.Price(&one.Spec); ok {
			known[one.Name] = price
		}
	}
	return known
}

// Basis are the prices by which the cost of a run is counted, as its journal records them.
func (m Models) Basis() []event.ModelPrice {
	var basis []event.ModelPrice
	for _, one := range m.All() {
		price, ok := m.providers.Price(&one.Spec)
		if !ok {
			continue
		}
		p := event.ModelPrice{Model: one.Name, Source: "catalog", TokenRates: rates(price.Pricing)}
		provider, known := m.providers.Of(one.Spec.Provider)
		switch {
		case one.Spec.Pricing != nil:
			p.Source = "manifest"
		case known && provider.Free:
			p.Source = "free"
		}
		if price.LongAbove > 0 {
			long := rates(price.Long)
			p.LongAbove, p.Long = price.LongAbove, &long
		}
		basis = append(basis, p)
	}
	return basis
}

func rates(p v1alpha1.Pricing) event.TokenRates {
	return event.TokenRates{Input: string(p.Input), Output: string(p.Output), CacheRead: string(p.CacheRead), CacheWrite: string(p.CacheWrite)}
}

// PriceAt returns what the tokens of each model cost at some prices. The zero reference
// is the model that will answer: the most expensive of those that may.
func (m Models) PriceAt(known map[string]model.Price) func(message.ModelRef, message.Usage) (message.Cost, bool) {
	return func(by message.ModelRef, u message.Usage) (message.Cost, bool) {
		if by != (message.ModelRef{}) {
			price, ok := known[by.Name]
			if !ok {
				return 0, false
			}
			cost, err := price.Cost(u)
			return cost, err == nil
		}
		most, ok := mostOf(known, m.own.Name, u)
		for _, other := range m.fallbacks {
			// A model whose price is not known is not used as a fallback.
			if cost, priced := mostOf(known, other.Name, u); ok && priced {
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
