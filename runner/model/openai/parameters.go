package openai

import (
	"encoding/json"
	"slices"

	"agentctl.dev/agentctl/runner/model"
)

// cacheKey is the member that groups requests which are likely to begin with
// the same bytes.
const cacheKey = "prompt_cache_key"

// structured is the parameter about structured output: true where a compatible
// server has it, false where even OpenAI's own must not be asked for it.
const structured = "structuredOutput"

// encrypted is the parameter that requests the encrypted reasoning of a model.
// The default is to request it, unless the model is known by its name not to
// reason.
const encrypted = "encryptedReasoning"

// aliases are names people bring from elsewhere.
var aliases = map[string]string{
	"max_tokens": "maxOutputTokens", "maxtokens": "maxOutputTokens", "max_completion_tokens": "maxOutputTokens",
	"maxcompletiontokens": "maxOutputTokens", "maxoutputtoken": "maxOutputTokens",
}

// chatParameters are those of the chat completions API.
var chatParameters = model.ParameterTable{
	Provider: "openai",
	Parameters: []model.Parameter{
		{Name: "frequencyPenalty", Wire: "frequency_penalty", Check: model.NumberFrom(-2, 2)},
		{Name: "maxOutputTokens", Wire: "max_completion_tokens", Check: model.PositiveNumber},
		{Name: "parallelToolCalls", Wire: "parallel_tool_calls", Check: model.Boolean, WithTools: true},
		{Name: "presencePenalty", Wire: "presence_penalty", Check: model.NumberFrom(-2, 2)},
		{Name: "reasoningEffort", Wire: "reasoning_effort", Check: model.NonEmptyString},
		{Name: "safetyIdentifier", Wire: "safety_identifier", Check: model.NonEmptyString},
		{Name: "seed", Wire: "seed", Check: model.WholeNumber},
		{Name: "serviceTier", Wire: "service_tier", Check: model.NonEmptyString},
		{Name: "stop", Wire: "stop", Check: model.StringList(4)},
		{Name: structured, Check: model.Boolean},
		{Name: "temperature", Wire: "temperature", Check: model.NumberFrom(0, 2)},
		{Name: "topP", Wire: "top_p", Check: model.NumberFrom(0, 1)},
		{Name: "user", Wire: "user", Check: model.NonEmptyString},
		{Name: "verbosity", Wire: "verbosity", Check: model.NonEmptyString},
	},
	Aliases:  aliases,
	Reserved: []string{"messages", "model", "stream", "stream_options", "tools", "tool_choice", "n", "functions"},
}

// responsesParameters are those of the responses API.
var responsesParameters = model.ParameterTable{
	Provider: "openai with api responses",
	Parameters: []model.Parameter{
		{Name: encrypted, Check: model.Boolean},
		{Name: "maxOutputTokens", Wire: "max_output_tokens", Check: model.PositiveNumber},
		{Name: "parallelToolCalls", Wire: "parallel_tool_calls", Check: model.Boolean, WithTools: true},
		{Name: "reasoningEffort", Check: model.NonEmptyString},
		{Name: "reasoningSummary", Check: model.NonEmptyString},
		{Name: "safetyIdentifier", Wire: "safety_identifier", Check: model.NonEmptyString},
		{Name: "serviceTier", Wire: "service_tier", Check: model.NonEmptyString},
		{Name: structured, Check: model.Boolean},
		{Name: "temperature", Wire: "temperature", Check: model.NumberFrom(0, 2)},
		{Name: "topP", Wire: "top_p", Check: model.NumberFrom(0, 1)},
		{Name: "truncation", Wire: "truncation", Check: model.OneOf("auto", "disabled")},
		{Name: "user", Wire: "user", Check: model.NonEmptyString},
		{Name: "verbosity", Check: model.NonEmptyString},
	},
	Aliases: aliases,
	Reserved: []string{
		"input", "instructions", "model", "stream", "stream_options", "store", "include", "tools", "tool_choice", "previous_response_id",
		"conversation", "background", "reasoning", "text",
	},
}

// CheckParameters returns what is wrong with spec.parameters of a Model that
// speaks chat completions.
func CheckParameters(raw json.RawMessage) []model.Problem { return chatParameters.Read(raw).Problems }

// CheckResponsesParameters is CheckParameters for the responses API.
func CheckResponsesParameters(raw json.RawMessage) []model.Problem {
	return responsesParameters.Read(raw).Problems
}

// has reports whether a member is among those of a Model.
func has(members model.Members, name string) bool {
	return slices.ContainsFunc(members, func(m model.Member) bool { return m.Name == name })
}
