// Package price holds the list prices of well-known models, each with the day on which it held.
package price

import (
	_ "embed"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
)

//go:embed prices.csv
var table string

// ownHost is where a provider sells at its list prices. A compatible server, a
// gateway or a regional endpoint has prices of its own.
const ownHost = "api.openai.com"

// Entry is one line of the list.
type Entry struct {
	Provider v1alpha1.Provider
	Model    string
	Pricing  v1alpha1.Pricing
	// AsOf is the day on which the price held, as 2006-01-02.
	AsOf string
	// Source is where it was read.
	Source string
}

// Of returns what the tokens of a model cost: what its manifest declares, else
// the list price. False is an unknown price, which is not zero.
func Of(spec *v1alpha1.ModelSpec) (v1alpha1.Pricing, bool) {
	if spec.Pricing != nil {
		return *spec.Pricing, true
	}
	if spec.Provider == v1alpha1.ProviderScripted {
		return v1alpha1.Pricing{Input: "0", Output: "0"}, true
	}
	e, ok := Listed(spec)
	return e.Pricing, ok
}

// Listed returns the list price of a model: by its exact id, or the id and the
// date of a snapshot; only at the provider's own endpoint and in its standard
// tier.
func Listed(spec *v1alpha1.ModelSpec) (Entry, bool) {
	if spec.Model == "" || !own(spec.BaseURL) || !standard(spec.Parameters) {
		return Entry{}, false
	}
	var dated Entry
	for line := range strings.Lines(table) {
		e, ok := parse(strings.TrimSpace(line))
		switch {
		case !ok || e.Provider != spec.Provider:
		case e.Model == spec.Model:
			return e, true
		case snapshot(spec.Model, e.Model):
			dated = e
		}
	}
	return dated, dated.Model != ""
}

func parse(line string) (Entry, bool) {
	f := strings.Split(line, ",")
	if strings.HasPrefix(line, "#") || len(f) != 8 {
		return Entry{}, false
	}
	return Entry{
		Provider: v1alpha1.Provider(f[0]), Model: f[1], AsOf: f[6], Source: f[7],
		Pricing: v1alpha1.Pricing{
			Input: v1alpha1.Money(f[2]), CacheRead: v1alpha1.Money(f[3]), CacheWrite: v1alpha1.Money(f[4]), Output: v1alpha1.Money(f[5]),
		},
	}, true
}

// snapshot says whether an id is that of a model with a date behind it.
func snapshot(id, name string) bool {
	date, ok := strings.CutPrefix(id, name+"-")
	if !ok {
		return false
	}
	_, err := time.Parse(time.DateOnly, date)
	return err == nil
}

func own(baseURL string) bool {
	if baseURL == "" {
		return true
	}
	u, err := url.Parse(baseURL)
	return err == nil && u.Scheme == "https" && strings.EqualFold(u.Host, ownHost)
}

// standard says whether the request is in the tier of the list: others cost
// half, or twice as much.
func standard(parameters *v1alpha1.JSON) bool {
	if parameters == nil || len(parameters.Raw) == 0 {
		return true
	}
	var p struct {
		ServiceTier string `json:"serviceTier"`
	}
	if json.Unmarshal(parameters.Raw, &p) != nil {
		return false
	}
	return p.ServiceTier == "" || p.ServiceTier == "auto" || p.ServiceTier == "default"
}
