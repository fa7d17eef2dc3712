package model

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Provider describes one value of spec.provider: everything that the rest of the
// program asks about it. Each implementation returns one.
type Provider struct {
	// Name in spec.provider.
	Name v1alpha1.Provider
	// BaseURL is its own endpoint, as spec.baseURL takes it; "" for a provider that
	// is not reached over the network.
	BaseURL string
	// KeyVariable is the environment variable in which people keep its key.
	KeyVariable string
	// Catalog is its well-known models, as ParseCatalog reads them; "" for a provider
	// that is not reached over the network.
	Catalog string
	// Free answers cost nothing.
	Free bool
	// APIs that spec.api can choose from, the default first; nil where there is
	// no choice.
	APIs []v1alpha1.ModelAPI
	// Relays are the paths under which programs of others send their requests for a model
	// of the provider, where they do: that of each API which they may speak.
	Relays []string
	// Section is the part of the spec that only this provider reads, or "".
	Section Section

	// Open begins a conversation. It sends nothing.
	Open func(s Setup, p message.Prompt) (Conversation, error)
	// CheckParameters returns what is wrong with spec.parameters, which are not empty.
	// Optional: without it nothing is checked.
	CheckParameters func(api v1alpha1.ModelAPI, raw json.RawMessage) []Problem
	// OutputLimit is the most tokens that requests let an answer hold, if it is not the
	// parameter maxOutputTokens. Optional.
	OutputLimit func(spec *v1alpha1.ModelSpec) int64
	// CheckExpressions returns what is wrong with CEL in the section. Optional.
	CheckExpressions func(spec *v1alpha1.ModelSpec) []Problem
	// Pinned reports whether a name without a date stands for one model for ever. Optional.
	Pinned func(model string) bool
	// CheckFiles returns what is wrong with files that the section names; a relative
	// path is relative to dir. Optional.
	CheckFiles func(dir string, spec *v1alpha1.ModelSpec) []Problem
}

// Section is a part of a Model's spec that one provider reads.
type Section struct {
	// Field, for example scripted.
	Field string
	// Set reports whether a spec has it.
	Set func(*v1alpha1.ModelSpec) bool
}

// Setup is what a conversation is begun with.
type Setup struct {
	// Name of the Model object and its spec. Required.
	Name string
	Spec *v1alpha1.ModelSpec
	// Prompt and Inputs of the run, for a provider that reads them.
	Prompt string
	Inputs json.RawMessage
	// APIKey returns the value behind spec.apiKey, nil sends none; KeySource is where
	// it was found, for errors.
	APIKey    func(context.Context) (string, error)
	KeySource string
	// Transport is shared by the conversations of a run; nil: each has its own.
	Transport http.RoundTripper
	// Blob returns the content of a blob that a message names; nil knows none.
	Blob func(id string) ([]byte, error)
	// Shows reports whether the model can be shown media of a type that a tool returned;
	// Registry.Open sets it. Nil: all that the API takes.
	Shows func(mime string) bool
}

// Relay reports whether programs of others can send their requests under a path.
func (p *Provider) Relay(path string) bool { return slices.Contains(p.Relays, path) }

// Host is the host of the provider's own endpoint.
func (p *Provider) Host() string {
	host, _, _ := strings.Cut(strings.TrimPrefix(p.BaseURL, "https://"), "/")
	return host
}

// Remote reports whether the provider is reached over the network.
func (p *Provider) Remote() bool { return p.BaseURL != "" }

// api is what messages call the provider with one of its APIs.
func (p *Provider) api(a v1alpha1.ModelAPI) string {
	if len(p.APIs) == 0 {
		return string(p.Name)
	}
	return string(p.Name) + " with api " + string(a)
}
