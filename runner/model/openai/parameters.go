package openai

import (
	"encoding/json"

	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/parameter"
)

// chatParameters are those of the chat completions API.
var chatParameters = parameter.Table{
	Provider: "openai",
	Parameters: []parameter.Parameter{
		{Name: "frequencyPenalty", Wire: "frequency_penalty", Check: parameter.Number(-2, 2)},
		{Name: "maxOutputTokens", Wire: "max_completion_tokens", Check: parameter.Positive},
		{Name: "parallelToolCalls", Wire: "parallel_tool_calls", Check: parameter.Boolean, WithTools: true},
		{Name: "presencePenalty", Wire: "presence_penalty", Check: parameter.Number(-2, 2)},
		{Name: "reasoningEffort", Wire: "reasoning_effort", Check: parameter.Text},
		{Name: "seed", Wire: "seed", Check: parameter.Integer},
		{Name: "serviceTier", Wire: "service_tier", Check: parameter.Text},
		{Name: "stop", Wire: "stop", Check: parameter.Texts(4)},
		{Name: "temperature", Wire: "temperature", Check: parameter.Number(0, 2)},
		{Name: "topP", Wire: "top_p", Check: parameter.Number(0, 1)},
		{Name: "user", Wire: "user", Check: parameter.Text},
		{Name: "verbosity", Wire: "verbosity", Check: parameter.Text},
	},
	Aliases: map[string]string{
		"max_tokens": "maxOutputTokens", "maxtokens": "maxOutputTokens", "max_completion_tokens": "maxOutputTokens",
		"maxcompletiontokens": "maxOutputTokens", "maxoutputtoken": "maxOutputTokens",
	},
	Reserved: []string{"messages", "model", "stream", "stream_options", "tools", "tool_choice", "n", "functions"},
}

// outputLimits are the names servers have for the most an answer may hold.
var outputLimits = []string{"max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens", "n_predict"}

// CheckParameters returns what is wrong with spec.parameters of a Model.
func CheckParameters(raw json.RawMessage) []model.Problem { return chatParameters.Read(raw).Problems }
