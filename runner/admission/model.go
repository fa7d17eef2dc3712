package admission

import (
	"cmp"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/openai"
)

func (a *admitter) model(d *manifest.Document, m *v1alpha1.Model) {
	known := names(a.catalog.Models)
	for i, ref := range m.Spec.Fallbacks {
		a.reference(d, manifest.Join(manifest.Index("spec.fallbacks", i), "name"), v1alpha1.KindModel, ref.Name, known)
	}
	a.parameters(d, m)
	if m.Spec.APIKey != nil {
		a.valueFrom(d, "spec.apiKey.valueFrom", &m.Spec.APIKey.ValueFrom)
	}
	a.positive(d, "spec.retry.maxDelay", m.Spec.Retry.MaxDelay.Duration)
}

// parameters asks the provider what it takes. One that this program cannot
// speak to yet is not checked.
func (a *admitter) parameters(d *manifest.Document, m *v1alpha1.Model) {
	if m.Spec.Parameters == nil || len(m.Spec.Parameters.Raw) == 0 {
		return
	}
	var problems []model.Problem
	switch m.Spec.Provider {
	case v1alpha1.ProviderOpenAI:
		problems = openai.CheckParameters(m.Spec.Parameters.Raw)
	case v1alpha1.ProviderScripted:
		if raw := string(m.Spec.Parameters.Raw); raw != "{}" {
			problems = []model.Problem{{Path: "spec.parameters", Message: "the scripted provider takes no parameters"}}
		}
	default:
		return
	}
	for _, p := range problems {
		text, advice, _ := strings.Cut(p.Message, "; ")
		f := d.KeyErrorf(p.Path, "%s", text).With(advice)
		if list, ok := strings.CutPrefix(advice, "it has "); ok { // the names it knows: one may be near
			list, _, _ = strings.Cut(list, ", and ")
			name := p.Path[strings.LastIndexByte(p.Path, '.')+1:]
			f.Suggestion = cmp.Or(manifest.Suggest(name, strings.Split(list, ", ")), advice)
		}
		a.add(f)
	}
}
