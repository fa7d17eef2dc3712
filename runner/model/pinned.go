package model

import (
	"net/url"
	"regexp"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// versioned matches names that end with a version which a provider does not change: a date,
// the revision of a Gemini model, or a digest.
//
//	gpt-5-mini-2025-08-07   claude-haiku-4-5-20251001   gemini-2.5-flash-preview-09-2025
//	gemini-2.0-flash-001    anthropic.claude-sonnet-4-5-20250929-v1:0   org/model@sha256:9f86...
var versioned = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)[-@:](20\d\d-?[01]\d-?[0-3]\d(-v\d+(:\d+)?)?|preview-[01]\d-(20\d\d|[0-3]\d)|0\d\d)$|@(sha256:)?[0-9a-f]{12,64}$`)
})

// Pinned reports whether a model is always the same one: it is not reached over a network,
// or its name has a version. What a server makes of a name is its own affair.
func (r Registry) Pinned(spec *v1alpha1.ModelSpec) bool {
	p, ok := r.Of(spec.Provider)
	if !ok {
		return false
	}
	return !p.Remote() || versioned().MatchString(spec.Model) || p.Pinned != nil && p.Pinned(spec.Model)
}

// ToPin says of a model that is not pinned which server may answer with another one, and how
// its name gets a version.
func ToPin(spec *v1alpha1.ModelSpec) (server, how string) {
	if u, err := url.Parse(spec.BaseURL); err == nil && u.Host != "" {
		return u.Host, "a server of your own can serve it under a name with a version, such as " + spec.Model + "-2025-08-07"
	}
	example, ok := versions[spec.Provider]
	if !ok {
		example = versions[v1alpha1.ProviderOpenAI]
	}
	return string(spec.Provider), "name a version, such as " + example
}

// versions are names with a version, as providers give them.
var versions = map[v1alpha1.Provider]string{
	v1alpha1.ProviderOpenAI:    "gpt-5-mini-2025-08-07",
	v1alpha1.ProviderAnthropic: "claude-haiku-4-5-20251001",
	v1alpha1.ProviderGemini:    "gemini-2.0-flash-001",
}
