package runner

import (
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/anthropic"
	"agentctl.dev/agentctl/runner/model/gemini"
	"agentctl.dev/agentctl/runner/model/openai"
)

// admitted are the options of every admission: the providers are known here.
func admitted(o admission.Options) admission.Options {
	o.Parameters = parameterProblems
	return o
}

// parameterProblems asks the provider of a model what is wrong with its
// parameters. One that this program cannot speak to yet is not asked.
func parameterProblems(spec *v1alpha1.ModelSpec) []model.Problem {
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
