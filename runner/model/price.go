package model

import (
	"encoding/json"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Price is what the tokens of a model cost.
type Price struct {
	v1alpha1.Pricing
	// LongAbove is the number of input tokens, including those read from the cache, above
	// which Long applies to a request. 0: all cost the same.
	LongAbove int64
	Long      v1alpha1.Pricing
}

// Cost is what a request costs.
func (p Price) Cost(u message.Usage) (message.Cost, error) {
	if p.LongAbove > 0 && u.Input+u.CacheRead+u.CacheWrite > p.LongAbove {
		return Cost(p.Long, u)
	}
	return Cost(p.Pricing, u)
}

// Most is the most that a request of so many tokens can cost: for one whose
// tokens are estimated.
func (p Price) Most(u message.Usage) (message.Cost, error) {
	cost, err := most(p.Pricing, u)
	if err != nil || p.LongAbove == 0 {
		return cost, err
	}
	long, err := most(p.Long, u)
	return max(cost, long), err
}

// most counts all input as written to the provider's cache where that costs more.
func most(p v1alpha1.Pricing, u message.Usage) (message.Cost, error) {
	cost, err := Cost(p, u)
	if err != nil {
		return 0, err
	}
	u.Input, u.CacheWrite = 0, u.Input+u.CacheWrite
	written, err := Cost(p, u)
	return max(cost, written), err
}

// snapshot reports whether an id is that of a model with a date appended.
func snapshot(id, name string) bool {
	date, ok := strings.CutPrefix(id, name+"-")
	if !ok {
		return false
	}
	for _, form := range []string{time.DateOnly, "20060102"} {
		if _, err := time.Parse(form, date); err == nil {
			return true
		}
	}
	return false
}

// standard reports whether the request is in the tier of the list price: others cost half,
// or many times as much.
func standard(parameters *v1alpha1.JSON) bool {
	if parameters == nil || len(parameters.Raw) == 0 {
		return true
	}
	var p struct {
		ServiceTier string `json:"serviceTier"`
		Extra       map[string]json.RawMessage
	}
	if json.Unmarshal(parameters.Raw, &p) != nil {
		return false
	}
	for _, member := range dearer {
		if _, given := p.Extra[member]; given {
			return false
		}
	}
	// standard_only is Anthropic's word for it, auto what all take for default.
	return p.ServiceTier == "" || p.ServiceTier == "auto" || p.ServiceTier == "default" || p.ServiceTier == "standard_only"
}

// dearer are members of requests by which an answer has another price: sooner,
// later, or in a certain country.
var dearer = []string{"service_tier", "serviceTier", "speed", "inference_geo"}
