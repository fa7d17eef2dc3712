package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/model/provider"
)

func TestEachAnswerCostsWhatItsModelCosts(t *testing.T) {
	m := func(name, id string, p *v1alpha1.Pricing) *v1alpha1.Model {
		return &v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: id, Pricing: p}}
	}
	declared := func(in, out v1alpha1.Money) *v1alpha1.Pricing { return &v1alpha1.Pricing{Input: in, Output: out} }
	scripted := &v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Name: "script"}, Spec: v1alpha1.ModelSpec{Provider: v1alpha1.ProviderScripted}}
	many := admission.Plan{
		Model: m("own", "gpt-5-mini", nil), Summarizer: m("sum", "big", declared("100", "100")),
		Fallbacks: []*v1alpha1.Model{m("dear", "x", declared("3", "1")), m("unknown", "y", nil)},
	}
	for name, c := range map[string]struct {
		reason string
		plan   admission.Plan
		by     string
		want   string // "" is unknown
	}{
		"listed":         {"a well-known model has its list price", many, "own", "2.25"},
		"fallback":       {"a fallback its own", many, "dear", "4.00"},
		"summarizer":     {"so has who writes the summaries", many, "sum", "200.00"},
		"no price":       {"unknown is not zero", many, "unknown", ""},
		"stranger":       {"and so is a model that is not in the plan", many, "stranger", ""},
		"next":           {"the next answer may be the dearest; the summarizer does not answer, and who has no price is not asked", many, "", "4.00"},
		"next, cheaper":  {"a cheaper fallback lowers nothing", admission.Plan{Model: many.Model, Fallbacks: []*v1alpha1.Model{m("cheap", "x", declared("0", "0"))}}, "", "2.25"},
		"next, unknown":  {"without a price of the agent's model nothing is known", admission.Plan{Model: m("own", "x", nil), Fallbacks: many.Fallbacks}, "", ""},
		"scripted":       {"the scripted model is free", admission.Plan{Model: scripted}, "script", "0.00"},
		"next, scripted": {"and stays so", admission.Plan{Model: scripted}, "", "0.00"},
	} {
		p := &Plan{Plan: &c.plan, registries: Registries{Providers: provider.All()}}
		by := message.ModelRef{}
		if c.by != "" {
			by = message.ModelRef{Name: c.by, Provider: "openai"}
		}
		cost, ok := p.Models().PriceAt(p.Models().Prices())(by, message.Usage{Input: 1_000_000, Output: 1_000_000})
		if ok != (c.want != "") || ok && cost.String() != c.want {
			t.Errorf("%s: %s, known %t, want %q: %s", name, cost, ok, c.want, c.reason)
		}
	}
}

func TestTheLargestAnswerIsReserved(t *testing.T) {
	m := func(p v1alpha1.Provider, parameters string) *v1alpha1.Model {
		spec := v1alpha1.ModelSpec{Provider: p, Model: "claude-sonnet-4-5"}
		if parameters != "" {
			spec.Parameters = &v1alpha1.JSON{Raw: []byte(parameters)}
		}
		return &v1alpha1.Model{Spec: spec}
	}
	for reason, c := range map[string]struct {
		models []*v1alpha1.Model
		want   int64
	}{
		"nobody says":                          {[]*v1alpha1.Model{m(v1alpha1.ProviderOpenAI, "")}, 0},
		"a parameter says":                     {[]*v1alpha1.Model{m(v1alpha1.ProviderOpenAI, `{"maxOutputTokens":500}`)}, 500},
		"an API that always wants a limit":     {[]*v1alpha1.Model{m(v1alpha1.ProviderAnthropic, "")}, 32000},
		"which a parameter lowers":             {[]*v1alpha1.Model{m(v1alpha1.ProviderAnthropic, `{"maxOutputTokens":500}`)}, 500},
		"the largest of those that may answer": {[]*v1alpha1.Model{m(v1alpha1.ProviderGemini, `{"maxOutputTokens":70}`), m(v1alpha1.ProviderOpenAI, `{"maxOutputTokens":90}`)}, 90},
	} {
		p := &Plan{Plan: &admission.Plan{Model: c.models[0], Fallbacks: c.models[1:]}, registries: Registries{Providers: provider.All()}}
		if got := p.Models().longest(); got != c.want {
			t.Errorf("%s: %d, want %d", reason, got, c.want)
		}
	}
}
