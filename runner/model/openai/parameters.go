package openai

import (
	"encoding/json"
	"slices"

	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/parameter"
)

// cacheKey is the member that says which requests are likely to begin alike.
const cacheKey = "prompt_cache_key"

// structured is the parameter about structured output: true where a compatible
// server has it, false where even OpenAI's own must not be asked for it.
const structured = "structuredOutput"

// encrypted is the parameter about asking for the thoughts of a model, which is
// done unless its name says that it has none.
const encrypted = "encryptedReasoning"

// aliases are names people bring from elsewhere.
var aliases = map[string]string{
	"max_tokens": "maxOutputTokens", "maxtokens": "maxOutputTokens", "max_completion_tokens": "maxOutputTokens",
	"maxcompletiontokens": "maxOutputTokens", "maxoutputtoken": "maxOutputTokens",
}

// chatParameters are those of the chat completions API.
var chatParameters = parameter.Table{
	Provider: "openai",
	Parameters: []parameter.Parameter{
		{Name: "frequencyPenalty", Wire: "frequency_penalty", Check: parameter.Number(-2, 2)},
		{Name: "maxOutputTokens", Wire: "max_completion_tokens", Check: parameter.Positive},
		{Name: "parallelToolCalls", Wire: "parallel_tool_calls", Check: parameter.Boolean, WithTools: true},
		{Name: "presencePenalty", Wire: "presence_penalty", Check: parameter.Number(-2, 2)},
		{Name: "reasoningEffort", Wire: "reasoning_effort", Check: parameter.Text},
		{Name: "safetyIdentifier", Wire: "safety_identifier", Check: parameter.Text},
		{Name: "seed", Wire: "seed", Check: parameter.Integer},
		{Name: "serviceTier", Wire: "service_tier", Check: parameter.Text},
		{Name: "stop", Wire: "stop", Check: parameter.Texts(4)},
		{Name: structured, Check: parameter.Boolean},
		{Name: "temperature", Wire: "temperature", Check: parameter.Number(0, 2)},
		{Name: "topP", Wire: "top_p", Check: parameter.Number(0, 1)},
		{Name: "user", Wire: "user", Check: parameter.Text},
		{Name: "verbosity", Wire: "verbosity", Check: parameter.Text},
	},
	Aliases:  aliases,
	Reserved: []string{"messages", "model", "stream", "stream_options", "tools", "tool_choice", "n", "functions"},
}

// responsesParameters are those of the responses API.
var responsesParameters = parameter.Table{
	Provider: "openai with api responses",
	Parameters: []parameter.Parameter{
		{Name: encrypted, Check: parameter.Boolean},
		{Name: "maxOutputTokens", Wire: "max_output_tokens", Check: parameter.Positive},
		{Name: "parallelToolCalls", Wire: "parallel_tool_calls", Check: parameter.Boolean, WithTools: true},
		{Name: "reasoningEffort", Check: parameter.Text},
		{Name: "reasoningSummary", Check: parameter.Text},
		{Name: "safetyIdentifier", Wire: "safety_identifier", Check: parameter.Text},
		{Name: "serviceTier", Wire: "service_tier", Check: parameter.Text},
		{Name: structured, Check: parameter.Boolean},
		{Name: "temperature", Wire: "temperature", Check: parameter.Number(0, 2)},
		{Name: "topP", Wire: "top_p", Check: parameter.Number(0, 1)},
		{Name: "truncation", Wire: "truncation", Check: parameter.OneOf("auto", "disabled")},
		{Name: "user", Wire: "user", Check: parameter.Text},
		{Name: "verbosity", Check: parameter.Text},
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

// has says whether a member is among those of a Model.
func has(members parameter.Members, name string) bool {
	return slices.ContainsFunc(members, func(m parameter.Member) bool { return m.Name == name })
}
