package anthropic

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

// Provider describes provider anthropic.
func Provider() model.Provider {
	return model.Provider{
		Name: v1alpha1.Provider(provider.Name), BaseURL: provider.BaseURL, KeyVariable: provider.KeyVariable, Catalog: catalog,
		Open: func(s model.Setup, prompt message.Prompt) (model.Conversation, error) {
			return New(httpapi.ConfigOf(s), prompt)
		},
		CheckParameters: func(_ v1alpha1.ModelAPI, raw json.RawMessage) []model.Problem { return CheckParameters(raw) },
		OutputLimit: func(spec *v1alpha1.ModelSpec) int64 {
			if spec.Parameters == nil {
				return OutputLimit(spec.Model, nil)
			}
			return OutputLimit(spec.Model, spec.Parameters.Raw)
		},
	}
}
