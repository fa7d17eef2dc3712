package openai

import (
	_ "embed"
	"encoding/json"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
)

//go:embed models.csv
var catalog string

// The provider's own endpoint, and where people keep its key.
const (
	name        = "openai"
	baseURL     = "https://api.openai.com/v1"
	keyVariable = "OPENAI_API_KEY"
)

// Provider describes provider openai.
func Provider() model.Provider {
	return model.Provider{
		Name: name, BaseURL: baseURL, KeyVariable: keyVariable, Catalog: catalog,
		APIs: []v1alpha1.ModelAPI{v1alpha1.APIChat, v1alpha1.APIResponses}, Relays: []string{"/v1/chat/completions", "/v1/responses"},
		Open: func(s model.Setup, prompt message.Prompt) (model.Conversation, error) {
			if s.Spec.API == v1alpha1.APIResponses {
				return NewResponses(httpapi.ConfigOf(s), prompt)
			}
			return New(httpapi.ConfigOf(s), prompt)
		},
		CheckParameters: func(api v1alpha1.ModelAPI, raw json.RawMessage) []model.Problem {
			if api == v1alpha1.APIResponses {
				return CheckResponsesParameters(raw)
			}
			return CheckParameters(raw)
		},
	}
}
