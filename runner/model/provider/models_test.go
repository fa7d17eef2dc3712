package provider

import (
	"errors"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
)

func TestAModelIsNamedInManyWays(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		names  []string
		want   string // the models, "" for an error
		hint   string
	}{
		"id":         {"a model by its id", []string{"gpt-5-mini"}, "gpt-5-mini", ""},
		"full":       {"with its provider", []string{"openai/gpt-5-mini"}, "gpt-5-mini", ""},
		"dated":      {"with a date", []string{"claude-haiku-4-5-20251001", "openai/gpt-4o-2024-08-06"}, "gpt-4o claude-haiku-4-5", ""},
		"twice":      {"named twice it is listed once", []string{"gpt-5-mini", "openai/gpt-5-mini"}, "gpt-5-mini", ""},
		"near":       {"a slip of the pen", []string{"gpt-5", "gtp-5-mini"}, "", "did you mean gpt-5-mini?"},
		"provider":   {"of a provider's name, too", []string{"antropic"}, "", "did you mean anthropic?"},
		"far":        {"what is not known can be used", []string{"my-model-at-home"}, "", "spec.pricing"},
		"empty":      {"nothing is named", []string{""}, "", "spec.pricing"},
		"other side": {"a model is its provider's", []string{"gemini/gpt-5-mini"}, "", "did you mean"},
	} {
		models, err := Models(c.names...)
		var got []string
		for _, m := range models {
			got = append(got, m.Model)
		}
		if strings.Join(got, " ") != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q: %s", name, got, err, c.want, c.reason)
		}
		if u, ok := errors.AsType[*reason.UsageError](err); err != nil && (!ok || !strings.Contains(u.Hint, c.hint)) {
			t.Errorf("%s: %v without hint %q", name, err, c.hint)
		}
	}
	all, err := Models()
	if err != nil || len(all) < 20 {
		t.Errorf("%d models, %v", len(all), err)
	}
	long := 0
	for _, m := range all {
		if m.ContextWindow == nil || m.MaxOutput == nil || m.AsOf == "" || len(m.Capabilities) == 0 {
			t.Errorf("%+v lacks something", m)
		}
		if m.Long != nil {
			long++
		}
	}
	if long == 0 {
		t.Error("no model costs more when a request is long")
	}
	google, err := Models("gemini")
	for _, m := range google {
		if m.Provider != "gemini" {
			t.Errorf("%s is not a model of gemini", m.Model)
		}
	}
	if err != nil || len(google) < 4 {
		t.Errorf("%d models of gemini, %v", len(google), err)
	}
}
