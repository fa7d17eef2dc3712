package manifest

import (
	"cmp"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/api/reason"
)

// DidYouMean is the sentence that offers another name.
func DidYouMean(name string) string { return fmt.Sprintf("did you mean %q?", name) }

// makers are names that people give a provider, beside its own.
var makers = map[string]string{
	"claude": "anthropic", "google": "gemini", "vertex": "gemini", "vertexai": "gemini", "googleai": "gemini", "gpt": "openai", "chatgpt": "openai",
	"replay": "cassette", "recording": "cassette", "script": "scripted", "mock": "scripted",
}

// provider is advice about a provider that is not known: most servers of other
// makers speak as OpenAI does.
func provider(name string, known []string) string {
	if maker := makers[strings.ToLower(name)]; maker != "" {
		return DidYouMean(maker)
	}
	return cmp.Or(Suggest(name, known), "a server that speaks chat completions is provider: openai, with its baseURL")
}

// Suggest returns the sentence for the candidate that a typist most likely
// meant, or "" when none is near.
func Suggest(name string, candidates []string) string {
	n := reason.Nearest(name, candidates)
	if n == "" || n == name || len(name) < 3 && !strings.EqualFold(n, name) {
		return "" // of two letters, one is not a slip but another name
	}
	return DidYouMean(n)
}
