package anthropic

import (
	_ "embed"
	"encoding/json"
	"strconv"
	"strings"

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
		Name: v1alpha1.Provider(provider.Name), BaseURL: provider.BaseURL, KeyVariable: provider.KeyVariable, Catalog: catalog, Relays: []string{"/v1/messages"},
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
		Pinned: pinned,
	}
}

// pinned reports whether a name is that of a model from 4.6 on: before, names without a
// date are aliases.
func pinned(name string) bool {
	parts := strings.Split(name, "-")
	if len(parts) < 3 || len(parts) > 4 || parts[0] != "claude" {
		return false
	}
	major, err := strconv.Atoi(parts[2])
	if err != nil || major < 4 || major > 99 {
		return false
	}
	if len(parts) == 3 {
		return major > 4
	}
	minor, err := strconv.Atoi(parts[3])
	return err == nil && minor >= 0 && minor < 100 && (major > 4 || minor >= 6)
}
