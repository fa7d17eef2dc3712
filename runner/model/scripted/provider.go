package scripted

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model"
)

// Provider describes provider scripted.
func Provider() model.Provider {
	return model.Provider{
		Name: v1alpha1.ProviderScripted, Free: true,
		Section: model.Section{Field: "scripted", Set: func(s *v1alpha1.ModelSpec) bool { return s.Scripted != nil }},
		Open: func(s model.Setup, prompt message.Prompt) (model.Conversation, error) {
			return New(s.Spec.Scripted, Options{Name: s.Name, Prompt: s.Prompt, Inputs: s.Inputs}, prompt)
		},
		CheckParameters: func(_ v1alpha1.ModelAPI, raw json.RawMessage) []model.Problem {
			if string(raw) == "{}" {
				return nil
			}
			return []model.Problem{{Path: "spec.parameters", Message: "the scripted provider takes no parameters"}}
		},
		CheckExpressions: func(s *v1alpha1.ModelSpec) []model.Problem { return Check(s.Scripted) },
	}
}
