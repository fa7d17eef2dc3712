package provider

import (
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model"
)

// Model is an entry of the embedded snapshot. A value that is not known is empty or
// nil, not zero.
type Model struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// ContextWindow, MaxInput and MaxOutput in tokens. MaxInput is given where it is
	// less than the window.
	ContextWindow *int64 `json:"contextWindow"`
	MaxInput      *int64 `json:"maxInput"`
	MaxOutput     *int64 `json:"maxOutput"`
	// Pricing in US dollars per million tokens, with the names of spec.pricing.
	Pricing v1alpha1.Pricing `json:"pricing"`
	// Long is the pricing of requests with a long input; nil where all requests cost
	// the same.
	Long *LongPricing `json:"longPricing"`
	// Capabilities are some of tools, images, pdf, reasoning, structuredOutput.
	Capabilities []string `json:"capabilities"`
	// AsOf is the day on which the entry was checked, Source where it is published.
	AsOf   string `json:"asOf"`
	Source string `json:"source"`
}

// LongPricing is what long requests cost.
type LongPricing struct {
	// AboveTokens is the number of input tokens, including those read from the cache,
	// above which the pricing applies.
	AboveTokens int64 `json:"aboveTokens"`
	v1alpha1.Pricing
}

// Vendor is a provider that sells models.
type Vendor struct {
	Name        string `json:"name"`
	BaseURL     string `json:"baseURL"`
	KeyVariable string `json:"keyVariable"`
}

// Vendors returns the vendors of the snapshot.
func Vendors() []Vendor {
	var all []Vendor
	for _, p := range All().Remote() {
		all = append(all, Vendor{string(p.Name), p.BaseURL, p.KeyVariable})
	}
	return all
}

// KeyVariables returns the environment variables that hold the keys of providers by
// convention.
func KeyVariables() []string {
	var names []string
	for _, p := range All().Remote() {
		names = append(names, p.KeyVariable)
	}
	return names
}

// Models returns the entries of the snapshot: all of them, or those of the named
// providers and models. A model is named by its id, with or without the provider and a
// slash before it.
func Models(names ...string) ([]Model, error) {
	all := All().Models()
	if err := checkNames(all, names); err != nil {
		return nil, err
	}
	found := []Model{}
	for i := range all {
		if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return named(&all[i], n) }) {
			found = append(found, describe(&all[i]))
		}
	}
	return found, nil
}

func named(e *model.CatalogEntry, name string) bool {
	vendor := string(e.Provider)
	if name == vendor || name == e.Model || name == vendor+"/"+e.Model {
		return true
	}
	// An id that ends in a date is a snapshot of the model.
	found, ok := All().Listed(&v1alpha1.ModelSpec{Provider: e.Provider, Model: strings.TrimPrefix(name, vendor+"/")})
	return ok && found.Model == e.Model
}

// checkNames refuses a name that neither a provider nor a model has.
func checkNames(all []model.CatalogEntry, names []string) error {
	for _, n := range names {
		if slices.ContainsFunc(all, func(e model.CatalogEntry) bool { return named(&e, n) }) {
			continue
		}
		var known []string
		for _, p := range All().Remote() {
			known = append(known, string(p.Name))
		}
		for _, e := range all {
			known = append(known, e.Model, string(e.Provider)+"/"+e.Model)
		}
		err := reason.Usagef("nothing is known of %q", n)
		if near := reason.Nearest(n, known); near != "" {
			return err.WithHint("did you mean " + near + "?")
		}
		return err.WithHint(fmt.Sprintf("a model that is not listed can be used all the same: its Model declares spec.pricing and spec.contextWindow; the list itself: agentctl models %s", strings.Join(known[:len(All().Remote())], " ")))
	}
	return nil
}

func describe(e *model.CatalogEntry) Model {
	m := Model{
		Provider: string(e.Provider), Model: e.Model, Pricing: e.Price.Pricing, Capabilities: append([]string{}, e.Capabilities...),
		ContextWindow: known(e.ContextWindow), MaxInput: known(e.MaxInput), MaxOutput: known(e.MaxOutput), AsOf: e.AsOf, Source: e.Source,
	}
	if e.Price.LongAbove > 0 {
		m.Long = &LongPricing{e.Price.LongAbove, e.Price.Long}
	}
	return m
}

func known(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}
