package model_test

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/provider"
)

func TestAPinnedModelHasAVersionInItsName(t *testing.T) {
	for _, c := range []struct {
		provider v1alpha1.Provider
		model    string
		want     bool
		reason   string
	}{
		{"openai", "gpt-5-mini-2025-08-07", true, "the date of a snapshot"},
		{"openai", "gpt-5-mini", false, "an alias of the newest snapshot"},
		{"openai", "gpt-5.2", false, "a number of a family is not one of a snapshot"},
		{"openai", "chatgpt-latest", false, "it says that it moves"},
		{"openai", "qwen3:8b", false, "a tag of a local server can be given to another model"},
		{"openai", "org/model@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", true, "a digest"},
		{"anthropic", "claude-haiku-4-5-20251001", true, "the date of a snapshot"},
		{"anthropic", "claude-haiku-4-5", false, "an alias before 4.6"},
		{"anthropic", "claude-opus-4-6", true, "from 4.6 on an id is a snapshot"},
		{"anthropic", "claude-sonnet-5", true, "a major version without a minor one"},
		{"anthropic", "claude-opus-4", false, "an alias before 4.6"},
		{"anthropic", "claude-opus-latest", false, "it says that it moves"},
		{"openai", "claude-opus-4-6", false, "what another server calls so is not known"},
		{"gemini", "gemini-2.0-flash-001", true, "a revision"},
		{"gemini", "gemini-2.5-flash-preview-09-2025", true, "a dated preview"},
		{"gemini", "gemini-2.5-pro", false, "stable names get revisions"},
		{"scripted", "", true, "answers are in the manifest"},
		{"cassette", "", true, "answers are in a file"},
		{"unknown", "a-2025-01-01", false, "what a provider means by it is not known"},
	} {
		if got := provider.All().Pinned(&v1alpha1.ModelSpec{Provider: c.provider, Model: c.model}); got != c.want {
			t.Errorf("%s %s: pinned = %v, want %v: %s", c.provider, c.model, got, c.want, c.reason)
		}
	}
}

func TestHowAModelIsPinnedIsSaidOfItsServer(t *testing.T) {
	for _, c := range []struct {
		spec        v1alpha1.ModelSpec
		server, how string
	}{
		{v1alpha1.ModelSpec{Provider: "openai", Model: "gpt-5"}, "openai", "gpt-5-mini-2025-08-07"},
		{v1alpha1.ModelSpec{Provider: "anthropic", Model: "claude-opus-4"}, "anthropic", "claude-haiku-4-5-20251001"},
		{v1alpha1.ModelSpec{Provider: "gemini", Model: "gemini-2.5-pro"}, "gemini", "gemini-2.0-flash-001"},
		{v1alpha1.ModelSpec{Provider: "openai", Model: "qwen3", BaseURL: "http://localhost:11434/v1"}, "localhost:11434", "qwen3-2025-08-07"},
	} {
		server, how := model.ToPin(&c.spec)
		if server != c.server || !strings.HasSuffix(how, "such as "+c.how) {
			t.Errorf("%+v: %q, %q", c.spec, server, how)
		}
		named := c.spec
		named.Model = c.how
		if !provider.All().Pinned(&named) {
			t.Errorf("%s is no name that is pinned", c.how)
		}
	}
}
