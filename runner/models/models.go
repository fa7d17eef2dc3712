// Package models tells what is known of the models that providers sell: their names, limits and prices.
package models

import (
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/provider"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Model is what the embedded snapshot says of a model. What is not known is empty or
// nil; it is not zero.
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
	// Long is what requests cost that have more input than that; nil where all cost
	// the same.
	Long *LongPricing `json:"longPricing"`
	// Capabilities are some of tools, images, pdf, reasoning, structuredOutput.
	Capabilities []string `json:"capabilities"`
	// AsOf is a day on which all of it held, Source where it is published.
	AsOf   string `json:"asOf"`
	Source string `json:"source"`
}

// LongPricing is what long requests cost.
type LongPricing struct {
	// AboveTokens of input, the cache's included.
	AboveTokens int64 `json:"aboveTokens"`
	v1alpha1.Pricing
}

// Provider is who sells models.
type Provider struct {
	Name        string `json:"name"`
	BaseURL     string `json:"baseURL"`
	KeyVariable string `json:"keyVariable"`
}

// Providers are the providers of the snapshot.
func Providers() []Provider {
	var all []Provider
	for _, p := range provider.All().Remote() {
		all = append(all, Provider{string(p.Name), p.BaseURL, p.KeyVariable})
	}
	return all
}

// KeyVariables are the environment variables in which people keep the keys of
// providers.
func KeyVariables() []string {
	var names []string
	for _, p := range provider.All().Remote() {
		names = append(names, p.KeyVariable)
	}
	return names
}

// List returns what the snapshot says: all of it, or of the
// providers and models that are named. A model is named by its id, with or
// without the provider and a slash before it.
func List(names ...string) ([]Model, error) {
	all := provider.All().Models()
	if err := check(all, names); err != nil {
		return nil, err
	}
	found := []Model{}
	for i := range all {
		if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return named(&all[i], n) }) {
			found = append(found, told(&all[i]))
		}
	}
	return found, nil
}

func named(e *model.CatalogEntry, name string) bool {
	seller := string(e.Provider)
	if name == seller || name == e.Model || name == seller+"/"+e.Model {
		return true
	}
	// An id with a date behind it is one of the model's snapshots.
	found, ok := provider.All().Listed(&v1alpha1.ModelSpec{Provider: e.Provider, Model: strings.TrimPrefix(name, seller+"/")})
	return ok && found.Model == e.Model
}

// check refuses a name of nothing.
func check(all []model.CatalogEntry, names []string) error {
	for _, n := range names {
		if slices.ContainsFunc(all, func(e model.CatalogEntry) bool { return named(&e, n) }) {
			continue
		}
		var known []string
		for _, p := range provider.All().Remote() {
			known = append(known, string(p.Name))
		}
		for _, e := range all {
			known = append(known, e.Model, string(e.Provider)+"/"+e.Model)
		}
		err := reason.Usagef("nothing is known of %q", n)
		if near := reason.Nearest(n, known); near != "" {
			return err.WithHint("did you mean " + near + "?")
		}
		return err.WithHint(fmt.Sprintf("a model that is not listed can be used all the same: its Model declares spec.pricing and spec.contextWindow; the list itself: agentctl models %s", strings.Join(known[:len(provider.All().Remote())], " ")))
	}
	return nil
}

func told(e *model.CatalogEntry) Model {
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
