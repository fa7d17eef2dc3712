package provider

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model"
)

func TestEveryLineOfTheSnapshotMakesSense(t *testing.T) {
	seen := map[string]bool{}
	count := map[v1alpha1.Provider]int{}
	for _, p := range All() {
		for line := range strings.Lines(p.Catalog) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			found := model.ParseCatalog(p.Name, line)
			if len(found) != 1 {
				t.Errorf("%s: %q is not a line of a catalog", p.Name, line)
				continue
			}
			e := found[0]
			if seen[e.Model] || !p.Remote() || !strings.HasPrefix(e.Source, "https://") {
				t.Errorf("%q: the model twice, a provider that sells nothing, or no source", line)
			}
			seen[e.Model] = true
			count[e.Provider]++
			checkEntry(t, line, e)
		}
	}
	for _, p := range All().Remote() {
		if count[p.Name] < 4 {
			t.Errorf("only %d models of %s: a provider that is reached over the network lists at least four in its models.csv", count[p.Name], p.Name)
		}
	}
	if n := len(All().Models()); n != len(seen) {
		t.Errorf("%d of %d entries", n, len(seen))
	}
}

// capabilities are all that an entry may list.
var capabilities = []string{"tools", "images", "pdf", "reasoning", "structuredOutput"}

func checkEntry(t *testing.T, line string, e model.CatalogEntry) {
	t.Helper()
	if d, err := time.Parse(time.DateOnly, e.AsOf); err != nil || d.Year() < 2024 {
		t.Errorf("%q: no day: %v", line, err)
	}
	for _, c := range e.Capabilities {
		if !slices.Contains(capabilities, c) {
			t.Errorf("%q: nothing is called %q", line, c)
		}
	}
	if e.ContextWindow < 100_000 || e.MaxOutput < 4096 || e.MaxOutput >= e.ContextWindow || e.MaxInput >= e.ContextWindow {
		t.Errorf("%q: window %d, input %d and output %d are no limits", line, e.ContextWindow, e.MaxInput, e.MaxOutput)
	}
	checkPricing(t, line, e.Price.Pricing)
	if e.Price.LongAbove == 0 {
		if e.Price.Long != (v1alpha1.Pricing{}) {
			t.Errorf("%q: long prices without a length", line)
		}
		return
	}
	checkPricing(t, line, e.Price.Long)
	usage := message.Usage{Input: 1000, Output: 1000, CacheRead: 1000, CacheWrite: 1000}
	short, err := model.Cost(e.Price.Pricing, usage)
	long, err2 := model.Cost(e.Price.Long, usage)
	if err != nil || err2 != nil || long <= short || e.Price.LongAbove >= e.ContextWindow {
		t.Errorf("%q: a long request costs %s and a short one %s", line, long, short)
	}
}

func checkPricing(t *testing.T, line string, p v1alpha1.Pricing) {
	t.Helper()
	micros := func(m v1alpha1.Money) int64 {
		n, err := m.Micros()
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		return n
	}
	in, out := micros(p.Input), micros(p.Output)
	if in <= 0 || out <= in || in > 100_000_000 {
		t.Errorf("%q: input %d and output %d are no prices", line, in, out)
	}
	if c := p.CacheRead; c != "" && (micros(c) <= 0 || micros(c) >= in) {
		t.Errorf("%q: reading the cache is cheaper than input", line)
	}
	if c := p.CacheWrite; c != "" && micros(c) <= in {
		t.Errorf("%q: writing the cache is dearer than input", line)
	}
}

func TestALongRequestCostsMore(t *testing.T) {
	pro, ok := All().Price(&v1alpha1.ModelSpec{Provider: v1alpha1.ProviderGemini, Model: "gemini-2.5-pro"})
	if !ok {
		t.Fatal("gemini-2.5-pro is not known")
	}
	for name, c := range map[string]struct {
		reason     string
		u          message.Usage
		cost, most string
	}{
		"short": {"1000 * 1.25 + 100 * 10", message.Usage{Input: 1000, Output: 100, Reasoning: 40}, "0.00225", "0.004"},
		"at it": {"the length itself is short", message.Usage{Input: 200_000}, "0.25", "0.50"},
		"long":  {"and one more is long, with all its output", message.Usage{Input: 200_001, Output: 100}, "0.5015025", "0.5015025"},
		"cache": {"what was read from the cache counts", message.Usage{Input: 1, CacheRead: 200_000}, "0.0500025", "0.0500025"},
	} {
		cost, err := pro.Cost(c.u)
		most, err2 := pro.Most(c.u)
		if cost.String() != c.cost || most.String() != c.most || err != nil || err2 != nil {
			t.Errorf("%s: %s, at most %s, %v, want %s, at most %s: %s", name, cost, most, err, c.cost, c.most, c.reason)
		}
	}
	flat, _ := All().Price(&v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAnthropic, Model: "claude-haiku-4-5-20251001"})
	u := message.Usage{Input: 100, CacheWrite: 100, CacheRead: 1000, Output: 10}
	if cost, err := flat.Cost(u); cost.String() != "0.000375" || err != nil {
		t.Errorf("100 * 1 + 100 * 1.25 + 1000 * 0.1 + 10 * 5 is %s, %v", cost, err)
	}
	if most, err := flat.Most(u); most.String() != "0.0004" || err != nil {
		t.Errorf("with all input written to the cache it is at most %s, %v", most, err)
	}
	if _, err := (model.Price{Pricing: v1alpha1.Pricing{Output: "1"}}).Most(u); err == nil {
		t.Error("an unknown price is no zero")
	}
}

func TestWindow(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		spec   v1alpha1.ModelSpec
		want   int64
	}{
		"declared":  {"the manifest wins", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-5", ContextWindow: 1000}, 1000},
		"input":     {"a request may have less than the window", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-5-2025-08-07"}, 272_000},
		"answer":    {"and with its answer so much more", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-5", Parameters: &v1alpha1.JSON{Raw: []byte(`{"maxOutputTokens":10000}`)}}, 282_000},
		"too much":  {"never more than the window", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-5", Parameters: &v1alpha1.JSON{Raw: []byte(`{"maxOutputTokens":1000000}`)}}, 400_000},
		"broken":    {"parameters that are none change nothing", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-5", Parameters: &v1alpha1.JSON{Raw: []byte(`{"maxOutputTokens":"x"}`)}}, 272_000},
		"window":    {"the whole window", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAnthropic, Model: "claude-haiku-4-5", BaseURL: "https://api.anthropic.com"}, 200_000},
		"tier":      {"another tier has the same window", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-4o", Parameters: &v1alpha1.JSON{Raw: []byte(`{"serviceTier":"flex"}`)}}, 128_000},
		"elsewhere": {"a gateway may cut it", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderGemini, Model: "gemini-2.5-pro", BaseURL: "https://gateway.example"}, 0},
		"own, v1":   {"another path is the same host", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderGemini, Model: "gemini-2.5-pro", BaseURL: "https://generativelanguage.googleapis.com/"}, 1_048_576},
		"unknown":   {"unknown is 0", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-99"}, 0},
		"scripted":  {"a script has none", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderScripted}, 0},
		"other API": {"who speaks Anthropic's format is not Anthropic", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAnthropic, Model: "claude-haiku-4-5", BaseURL: "https://api.openai.com/v1"}, 0},
	} {
		if got := All().Window(&c.spec); got != c.want {
			t.Errorf("%s: %d, want %d: %s", name, got, c.want, c.reason)
		}
	}
}

func TestListed(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		spec   v1alpha1.ModelSpec
		want   string // the line's model, "" for none
	}{
		"exact":            {"the id of the list", v1alpha1.ModelSpec{Model: "gpt-5-mini"}, "gpt-5-mini"},
		"snapshot":         {"a dated id costs what the model costs", v1alpha1.ModelSpec{Model: "gpt-5-mini-2025-08-07"}, "gpt-5-mini"},
		"short name":       {"a longer name is another model", v1alpha1.ModelSpec{Model: "gpt-4o-mini-2024-07-18"}, "gpt-4o-mini"},
		"its own price":    {"one snapshot was dearer", v1alpha1.ModelSpec{Model: "gpt-4o-2024-05-13"}, "gpt-4o-2024-05-13"},
		"later snapshot":   {"and the later ones are not", v1alpha1.ModelSpec{Model: "gpt-4o-2024-11-20"}, "gpt-4o"},
		"suffix":           {"a suffix that is no date is another model", v1alpha1.ModelSpec{Model: "gpt-5-codex"}, ""},
		"no date":          {"neither is a day that never was", v1alpha1.ModelSpec{Model: "gpt-5-2025-13-45"}, ""},
		"longer":           {"nor what comes behind a date", v1alpha1.ModelSpec{Model: "gpt-5-2025-08-07-ft"}, ""},
		"unknown":          {"unknown stays unknown", v1alpha1.ModelSpec{Model: "gpt-99"}, ""},
		"case":             {"ids are exact", v1alpha1.ModelSpec{Model: "GPT-5"}, ""},
		"none":             {"no model", v1alpha1.ModelSpec{}, ""},
		"own address":      {"the endpoint written out", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "https://api.openai.com/v1"}, "gpt-5"},
		"gateway":          {"a gateway has its own prices", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "https://gateway.example/v1"}, ""},
		"region":           {"so has a region", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "https://eu.api.openai.com/v1"}, ""},
		"lookalike":        {"and whoever looks alike", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "https://api.openai.com.example/v1"}, ""},
		"in the clear":     {"nobody sells there without TLS", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "http://api.openai.com/v1"}, ""},
		"port":             {"another port is another server", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "https://api.openai.com:8443/v1"}, ""},
		"no address":       {"and no address is none", v1alpha1.ModelSpec{Model: "gpt-5", BaseURL: "https://%zz"}, ""},
		"Claude, dated":    {"Anthropic writes dates without dashes", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAnthropic, Model: "claude-sonnet-4-5-20250929"}, "claude-sonnet-4-5"},
		"Claude, no date":  {"a number that is no day", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAnthropic, Model: "claude-sonnet-4-5-20251329"}, ""},
		"Claude, older":    {"4 is not 4-5", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAnthropic, Model: "claude-sonnet-4-20250514"}, ""},
		"Gemini":           {"the stable name", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderGemini, Model: "gemini-2.5-flash"}, "gemini-2.5-flash"},
		"another provider": {"the same name elsewhere", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAnthropic, Model: "gpt-5"}, ""},
	} {
		if c.spec.Provider == "" {
			c.spec.Provider = v1alpha1.ProviderOpenAI
		}
		e, ok := All().Listed(&c.spec)
		if ok != (c.want != "") || e.Model != c.want {
			t.Errorf("%s: %+v, want %q: %s", name, e, c.want, c.reason)
		}
	}
}

func TestOf(t *testing.T) {
	declared := &v1alpha1.Pricing{Input: "1", CacheRead: "0.1", Output: "2"}
	usage := message.Usage{Input: 60, Output: 20, Reasoning: 5, CacheRead: 40}
	tier := func(parameters string) v1alpha1.ModelSpec {
		return v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-5", Parameters: &v1alpha1.JSON{Raw: []byte(parameters)}}
	}
	for name, c := range map[string]struct {
		spec v1alpha1.ModelSpec
		want string
	}{
		"declared": {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-5", Pricing: declared}, "0.000104"},
		"listed":   {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-5"}, "0.00028"},
		"scripted": {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderScripted}, "0.00"},
		"cassette": {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderCassette}, "0.00"},
		// Flex costs half, priority twice as much; what cannot be read is not guessed.
		"flex tier": {tier(`{"serviceTier":"flex"}`), ""}, "standard tier": {tier(`{"serviceTier":"default","temperature":1}`), "0.00028"},
		"fast": {tier(`{"extra":{"speed":"fast"}}`), ""}, "tier in extra": {tier(`{"extra":{"service_tier":"priority"}}`), ""},
		"other extra": {tier(`{"extra":{"top_k":1}}`), "0.00028"},
		"broken":      {tier(`{`), ""}, "empty": {tier(``), "0.00028"},
		"unknown": {v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "mine", BaseURL: "http://localhost/v1"}, ""},
	} {
		p, ok := All().Price(&c.spec)
		if ok != (c.want != "") {
			t.Errorf("%s: known %t", name, ok)
		}
		if !ok {
			continue
		}
		if cost, err := p.Cost(usage); err != nil || cost.String() != c.want {
			t.Errorf("%s: %s, %v, want %s", name, cost, err, c.want)
		}
	}
}

func BenchmarkListed(b *testing.B) {
	spec := v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "gpt-99"}
	for b.Loop() {
		if _, ok := All().Listed(&spec); ok {
			b.Fatal("gpt-99 has a price")
		}
	}
}

// TestWhatIsWrittenToTheCacheIsReserved is about APIs that charge more for input that they
// cache: only the answer reports which part of a request that is.
func TestWhatIsWrittenToTheCacheIsReserved(t *testing.T) {
	kept := v1alpha1.Pricing{Input: "4", CacheWrite: "5", Output: "20"}
	for name, c := range map[string]struct {
		price model.Price
		want  string
	}{
		"dearer":   {model.Price{Pricing: kept}, "7.00"},
		"cheaper":  {model.Price{Pricing: v1alpha1.Pricing{Input: "4", CacheWrite: "1", Output: "20"}}, "6.00"},
		"unknown":  {model.Price{Pricing: v1alpha1.Pricing{Input: "4", Output: "20"}}, "6.00"},
		"long too": {model.Price{Pricing: v1alpha1.Pricing{Input: "1", Output: "1"}, LongAbove: 10, Long: kept}, "7.00"},
	} {
		if most, err := c.price.Most(message.Usage{Input: 1_000_000, Output: 100_000}); err != nil || most.String() != c.want {
			t.Errorf("%s: %s, %v, want %s", name, most, err, c.want)
		}
	}
}
