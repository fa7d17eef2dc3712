package price

import (
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Provider is who sells models.
type Provider struct {
	Name v1alpha1.Provider
	// BaseURL is its own endpoint, as spec.baseURL takes it.
	BaseURL string
	// KeyVariable is the environment variable in which people keep its key.
	KeyVariable string
}

// Host is the host of its endpoint.
func (p Provider) Host() string {
	host, _, _ := strings.Cut(strings.TrimPrefix(p.BaseURL, "https://"), "/")
	return host
}

// Providers are all that sell models.
func Providers() []Provider {
	return []Provider{
		{v1alpha1.ProviderOpenAI, "https://api.openai.com/v1", "OPENAI_API_KEY"},
		{v1alpha1.ProviderAnthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY"},
		{v1alpha1.ProviderGemini, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"},
	}
}

// ProviderOf returns one of them.
func ProviderOf(name v1alpha1.Provider) (Provider, bool) {
	for _, p := range Providers() {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}
