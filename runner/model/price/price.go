// Package price holds a dated snapshot of well-known models: list prices, how much they take, and what they can do.
package price

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model"
)

// Price is what the tokens of a model cost.
type Price struct {
	v1alpha1.Pricing
	// LongAbove is the number of input tokens, the cache's included, above which a
	// request costs what Long says. 0: all cost the same.
	LongAbove int64
	Long      v1alpha1.Pricing
}

// Cost is what a request costs.
func (p Price) Cost(u message.Usage) (message.Cost, error) {
	if p.LongAbove > 0 && u.Input+u.CacheRead+u.CacheWrite > p.LongAbove {
		return model.Cost(p.Long, u)
	}
	return model.Cost(p.Pricing, u)
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
	cost, err := model.Cost(p, u)
	if err != nil {
		return 0, err
	}
	u.Input, u.CacheWrite = 0, u.Input+u.CacheWrite
	written, err := model.Cost(p, u)
	return max(cost, written), err
}

// Of returns what the tokens of a model cost: what its manifest declares, else
// the list price. False is an unknown price, which is not zero.
func Of(spec *v1alpha1.ModelSpec) (Price, bool) {
	if spec.Pricing != nil {
		return Price{Pricing: *spec.Pricing}, true
	}
	if spec.Provider == v1alpha1.ProviderScripted || spec.Provider == v1alpha1.ProviderCassette {
		return Price{Pricing: v1alpha1.Pricing{Input: "0", Output: "0"}}, true // nobody is asked
	}
	e, ok := Listed(spec)
	return e.Price, ok && standard(spec.Parameters)
}

// Window is how many tokens a request to a model and its answer may have
// together: what its manifest declares, else what the snapshot says. 0 is not
// known. Where a request may have less than the window, it is that and the most
// that the answer is asked for.
func Window(spec *v1alpha1.ModelSpec) int64 {
	if spec.ContextWindow > 0 {
		return spec.ContextWindow
	}
	e, _ := Listed(spec)
	if e.MaxInput == 0 {
		return e.ContextWindow
	}
	var p struct{ MaxOutputTokens int64 }
	if spec.Parameters != nil && json.Unmarshal(spec.Parameters.Raw, &p) != nil {
		p.MaxOutputTokens = 0 // it is told elsewhere
	}
	return min(e.ContextWindow, e.MaxInput+max(0, p.MaxOutputTokens))
}

// Listed returns what is known of a model: by its exact id, or the id and the
// date of a snapshot; only at the provider's own endpoint.
func Listed(spec *v1alpha1.ModelSpec) (Entry, bool) {
	if spec.Model == "" || !Own(spec) {
		return Entry{}, false
	}
	begin := string(spec.Provider) + ","
	var dated Entry
	for line := range strings.Lines(table) {
		rest, sold := strings.CutPrefix(line, begin)
		name, _, _ := strings.Cut(rest, ",")
		if !sold || !strings.HasPrefix(spec.Model, name) {
			continue
		}
		e, ok := parse(line)
		switch {
		case !ok:
		case e.Model == spec.Model:
			return e, true
		case snapshot(spec.Model, e.Model):
			dated = e
		}
	}
	return dated, dated.Model != ""
}

// snapshot says whether an id is that of a model with a date behind it.
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

// Own reports whether a model is asked for where the provider sells at its list
// prices. A compatible server, a gateway or a regional endpoint has prices and
// limits of its own; so has a provider that sells nothing.
func Own(spec *v1alpha1.ModelSpec) bool {
	p, ok := ProviderOf(spec.Provider)
	if !ok {
		return false
	}
	if spec.BaseURL == "" {
		return true
	}
	u, err := url.Parse(spec.BaseURL)
	return err == nil && u.Scheme == "https" && strings.EqualFold(u.Host, p.Host())
}

// standard says whether the request is in the tier of the list: others cost
// half, or many times as much.
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
