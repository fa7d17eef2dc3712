package price

import (
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model"
)

func TestEveryLineIsAPrice(t *testing.T) {
	seen := map[string]bool{}
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		e, ok := parse(line)
		if !ok {
			t.Errorf("%q is no line of eight columns", line)
			continue
		}
		if seen[e.Model] || e.Provider != v1alpha1.ProviderOpenAI || !strings.HasPrefix(e.Source, "https://") {
			t.Errorf("%q: the model twice, no provider or no source", line)
		}
		seen[e.Model] = true
		if d, err := time.Parse(time.DateOnly, e.AsOf); err != nil || d.Year() < 2024 {
			t.Errorf("%q: no day: %v", line, err)
		}
		micros := func(m v1alpha1.Money) int64 {
			n, err := m.Micros()
			if err != nil {
				t.Errorf("%q: %v", line, err)
			}
			return n
		}
		in, out := micros(e.Pricing.Input), micros(e.Pricing.Output)
		if in <= 0 || out <= in || in > 100_000_000 {
			t.Errorf("%q: input %d and output %d are no prices", line, in, out)
		}
		if c := e.Pricing.CacheRead; c != "" && (micros(c) <= 0 || micros(c) >= in) {
			t.Errorf("%q: reading the cache is cheaper than input", line)
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d models", len(seen))
	}
}

func TestListed(t *testing.T) {
	parameters := func(s string) *v1alpha1.JSON { return &v1alpha1.JSON{Raw: []byte(s)} }
	for name, c := range map[string]struct {
		reason string
		spec   v1alpha1.ModelSpec
		want   string // the line's model, "" for none
	}{
		"exact":             {"the id of the list", v1alpha1.ModelSpec{Model: "gpt-5-mini"}, "gpt-5-mini"},
		"snapshot":          {"a dated id costs what the model costs", v1alpha1.ModelSpec{Model: "gpt-5-mini-2025-08-07"}, "gpt-5-mini"},
		"short name":        {"a longer name is another model", v1alpha1.ModelSpec{Model: "gpt-4o-mini-2024-07-18"}, "gpt-4o-mini"},
		"its own price":     {"one snapshot was dearer", v1alpha1.ModelSpec{Model: "gpt-4o-2024-05-13"}, "gpt-4o-2024-05-13"},
		"later snapshot":    {"and the later ones are not", v1alpha1.ModelSpec{Model: "gpt-4o-2024-11-20"}, "gpt-4o"},
		"suffix":            {"a suffix that is no date is another model", v1alpha1.ModelSpec{Model: "gpt-5-codex"}, ""},
		"no date":           {"neither is a day that never was", v1alpha1.ModelSpec{Model: "gpt-5-2025-13-45"}, ""},
		"longer":            {"nor what comes behind a date", v1alpha1.ModelSpec{Model: "gpt-5-2025-08-07-ft"}, ""},
		"unknown":           {"unknown stays unknown", v1alpha1.ModelSpec{Model: "gpt-99"}, ""},
		"case":              {"ids are exact", v1alpha1.ModelSpec{Model: "GPT-5"}, ""},
		"none":              {"no model", v1alpha1.ModelSpec{}, ""},
		"own address":       {"the endpoint written out", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "https://api.openai.com/v1"}, "gpt-5"},
		"gateway":           {"a gateway has its own prices", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "https://gateway.example/v1"}, ""},
		"region":            {"so has a region", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "https://eu.api.openai.com/v1"}, ""},
		"lookalike":         {"and whoever looks alike", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "https://api.openai.com.example/v1"}, ""},
		"in the clear":      {"nobody sells there without TLS", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "http://api.openai.com/v1"}, ""},
		"port":              {"another port is another server", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "https://api.openai.com:8443/v1"}, ""},
		"no address":        {"and no address is none", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "https://%zz"}, ""},
		"tier":              {"flex costs half, priority twice as much", v1alpha1.ModelSpec{Model: "gpt-5", Parameters: parameters(`{"serviceTier":"flex"}`)}, ""},
		"standard tier":     {"the tier of the list", v1alpha1.ModelSpec{Model: "gpt-5", Parameters: parameters(`{"serviceTier":"default","temperature":1}`)}, "gpt-5"},
		"broken parameters": {"what cannot be read is not guessed", v1alpha1.ModelSpec{Model: "gpt-5", Parameters: parameters(`{`)}, ""},
		"empty parameters":  {"none", v1alpha1.ModelSpec{Model: "gpt-5", Parameters: parameters(``)}, "gpt-5"},
		"another provider":  {"the same name elsewhere", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAnthropic, Model: "gpt-5"}, ""},
	} {
		if c.spec.Provider == "" {
			c.spec.Provider = v1alpha1.ProviderOpenAI
		}
		e, ok := Listed(&c.spec)
		if ok != (c.want != "") || e.Model != c.want {
			t.Errorf("%s: %+v, want %q: %s", name, e, c.want, c.reason)
		}
	}
}

func TestOf(t *testing.T) {
	declared := &v1alpha1.Pricing{Input: "1", CacheRead: "0.1", Output: "2"}
	usage := message.Usage{Input: 60, Output: 20, Reasoning: 5, CacheRead: 40}
	for name, c := range map[string]struct {
		spec v1alpha1.ModelSpec
		want string
	}{
		"declared": {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-5", Pricing: declared}, "0.000104"},
		"listed":   {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-5"}, "0.00028"},
		"scripted": {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderScripted}, "0.00"},
		"unknown":  {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "mine", BaseURL: "http://localhost/v1"}, ""},
	} {
		p, ok := Of(&c.spec)
		if ok != (c.want != "") {
			t.Errorf("%s: known %t", name, ok)
		}
		if !ok {
			continue
		}
		if cost, err := model.Cost(p, usage); err != nil || cost.String() != c.want {
			t.Errorf("%s: %s, %v, want %s", name, cost, err, c.want)
		}
	}
}

func BenchmarkListed(b *testing.B) {
	spec := v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-99"}
	for b.Loop() {
		if _, ok := Listed(&spec); ok {
			b.Fatal("gpt-99 has a price")
		}
	}
}
