package runner

import (
	"encoding/json"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/anthropic"
	"agentctl.dev/agentctl/runner/model/gemini"
	"agentctl.dev/agentctl/runner/model/openai"
	"agentctl.dev/agentctl/runner/source"
)

// admitted are the options of every admission: the providers are known here.
func admitted(o admission.Options) admission.Options {
	o.Parameters, o.OutputLimit, o.Build = parameterProblems, outputLimit, source.Build
	return o
}

// parameterProblems asks the provider of a model what is wrong with its
// parameters. Of a name that only others take it tells whose it is: another name
// that looks like it would be no help.
func parameterProblems(spec *v1alpha1.ModelSpec) []model.Problem {
	found := ownProblems(spec)
	for i := range found {
		text, advice, _ := strings.Cut(found[i].Message, "; ")
		if strings.Contains(text, unknownParameter) && strings.HasPrefix(advice, "it has ") {
			if takers := takersOf(strings.TrimPrefix(found[i].Path, "spec.parameters.")); takers != "" {
				found[i].Message = text + "; " + takers
			}
		}
	}
	return found
}

// unknownParameter is what each provider says of a name that it does not take.
const unknownParameter = "has no parameter "

// takersOf says which APIs take a parameter, or "" when none does.
func takersOf(name string) string {
	raw, err := json.Marshal(map[string]any{name: nil})
	if err != nil {
		return ""
	}
	var takers []string
	for _, api := range []struct {
		name  string
		check func(json.RawMessage) []model.Problem
	}{
		{"openai with api chat", openai.CheckParameters},
		{"openai with api responses", openai.CheckResponsesParameters},
		{"anthropic", anthropic.CheckParameters},
		{"gemini", gemini.CheckParameters},
	} {
		if !slices.ContainsFunc(api.check(raw), func(p model.Problem) bool { return strings.Contains(p.Message, unknownParameter) }) {
			takers = append(takers, api.name)
		}
	}
	if len(takers) == 0 {
		return ""
	}
	return "it is a parameter of " + strings.Join(takers, ", ")
}

// ownProblems asks the provider. One that takes none by nature is not asked.
func ownProblems(spec *v1alpha1.ModelSpec) []model.Problem {
	switch spec.Provider {
	case v1alpha1.ProviderOpenAI:
		if spec.API == v1alpha1.APIResponses {
			return openai.CheckResponsesParameters(spec.Parameters.Raw)
		}
		return openai.CheckParameters(spec.Parameters.Raw)
	case v1alpha1.ProviderScripted:
		if raw := string(spec.Parameters.Raw); raw != "{}" {
			return []model.Problem{{Path: "spec.parameters", Message: "the scripted provider takes no parameters"}}
		}
	case v1alpha1.ProviderGemini:
		return gemini.CheckParameters(spec.Parameters.Raw)
	case v1alpha1.ProviderAnthropic:
		return anthropic.CheckParameters(spec.Parameters.Raw)
	case v1alpha1.ProviderCassette:
	}
	return nil
}

// outputLimit is the most an answer of a model may hold, where its parameters say
// so or its provider wants a limit in every request; 0 is not known.
func outputLimit(spec *v1alpha1.ModelSpec) int64 {
	var raw json.RawMessage
	if spec.Parameters != nil {
		raw = spec.Parameters.Raw
	}
	if spec.Provider == v1alpha1.ProviderAnthropic {
		return anthropic.OutputLimit(spec.Model, raw)
	}
	var params struct {
		MaxOutputTokens int64 `json:"maxOutputTokens"`
	}
	if json.Unmarshal(raw, &params) != nil {
		return 0 // the provider's check reports it
	}
	return params.MaxOutputTokens
}
