package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
)

// parameters that each provider's requests know. A provider that is not listed
// is not checked: this program cannot speak to it yet.
var parameters = map[v1alpha1.Provider][]string{
	v1alpha1.ProviderOpenAI: {
		"temperature", "topP", "maxOutputTokens", "reasoningEffort", "seed", "stop", "presencePenalty",
		"frequencyPenalty", "parallelToolCalls", "serviceTier", "user",
	},
	v1alpha1.ProviderScripted: {},
}

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

func (a *admitter) parameters(d *manifest.Document, m *v1alpha1.Model) {
	if m.Spec.Parameters == nil || len(m.Spec.Parameters.Raw) == 0 {
		return
	}
	var given map[string]any
	if err := json.Unmarshal(m.Spec.Parameters.Raw, &given); err != nil {
		a.add(d.Errorf("spec.parameters", "parameters are a mapping of names to values"))
		return
	}
	allowed, checked := parameters[m.Spec.Provider]
	if !checked {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		path := manifest.Join("spec.parameters", name)
		if !slices.Contains(allowed, name) {
			a.add(unknownParameter(d, path, name, m.Spec.Provider, allowed))
			continue
		}
		if message := wrongParameter(name, given[name]); message != "" {
			f := d.Errorf(path, "%s", message)
			f.See = "agentctl explain model.spec.parameters"
			a.add(f)
		}
	}
}

func unknownParameter(d *manifest.Document, path, name string, provider v1alpha1.Provider, allowed []string) manifest.Finding {
	f := d.KeyErrorf(path, "provider %s has no parameter %q", provider, name).With(manifest.Suggest(name, allowed))
	f.See = "agentctl explain model.spec.parameters"
	switch {
	case len(allowed) == 0:
		f.Suggestion = fmt.Sprintf("provider %s takes no parameters", provider)
	case f.Suggestion == "":
		f.Suggestion = "known: " + strings.Join(allowed, ", ")
	}
	return f
}

// wrongParameter says what a parameter should be, or "". Bounds are those of
// the wire format; what a single model accepts is its provider's business.
func wrongParameter(name string, v any) string {
	n, number := v.(float64)
	_, text := v.(string)
	between := func(low, high float64) string {
		if !number || n < low || n > high {
			return fmt.Sprintf("wants a number from %g to %g", low, high)
		}
		return ""
	}
	switch name {
	case "temperature":
		return between(0, 2)
	case "topP":
		return between(0, 1)
	case "presencePenalty", "frequencyPenalty":
		return between(-2, 2)
	case "maxOutputTokens":
		if !number || n < 1 || n != float64(int64(n)) {
			return "wants a whole number of at least 1"
		}
	case "seed":
		if !number || n != float64(int64(n)) {
			return "wants a whole number"
		}
	case "reasoningEffort", "serviceTier", "user":
		if !text {
			return "wants a text"
		}
	case "parallelToolCalls":
		if _, ok := v.(bool); !ok {
			return "wants true or false"
		}
	case "stop":
		return wrongStop(v)
	}
	return ""
}

func wrongStop(v any) string {
	const message = "wants a text or a list of at most four"
	switch v := v.(type) {
	case string:
		return ""
	case []any:
		if len(v) > 4 || slices.ContainsFunc(v, func(e any) bool { _, ok := e.(string); return !ok }) {
			return message
		}
		return ""
	}
	return message
}
