package runner

import (
	"context"
	"encoding/json"
	"fmt"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/openai"
	"agentctl.dev/agentctl/runner/model/scripted"
	"agentctl.dev/agentctl/runner/secret"
)

func (s *session) modelRef() message.ModelRef {
	return message.ModelRef{Name: s.Model.Name, Provider: string(s.Model.Spec.Provider), Model: s.Model.Spec.Model}
}

// conversation opens a conversation with the declared model.
func (s *session) conversation(key secret.Value, p message.Prompt) (loop.Model, error) {
	spec := &s.Model.Spec
	switch spec.Provider {
	case v1alpha1.ProviderScripted:
		inputs, err := json.Marshal(s.inputs)
		if err != nil {
			return nil, fmt.Errorf("inputs: %w", err)
		}
		return scripted.New(spec.Scripted, scripted.Options{Name: s.Model.Name, Prompt: s.prompt, Inputs: inputs}, p)
	case v1alpha1.ProviderOpenAI:
		if spec.API == v1alpha1.APIResponses {
			return nil, unavailable(spec.Provider, " with api responses")
		}
		cfg := openai.Config{
			Name: s.Model.Name, Model: spec.Model, BaseURL: spec.BaseURL,
			Retry: model.Retry{Attempts: int(spec.Retry.Attempts), MaxDelay: spec.Retry.MaxDelay.Duration},
		}
		if !key.IsZero() {
			cfg.APIKey = func(context.Context) (string, error) { return key.Reveal(), nil }
		}
		if spec.Parameters != nil {
			cfg.Parameters = spec.Parameters.Raw
		}
		return openai.New(cfg, p)
	case v1alpha1.ProviderAnthropic, v1alpha1.ProviderGemini, v1alpha1.ProviderCassette:
	}
	return nil, unavailable(spec.Provider, "")
}
