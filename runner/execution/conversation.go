package execution

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/fallback"
	"agentctl.dev/agentctl/runner/secret"
)

// Models are the models of a run, and how they are reached. Summarizer may be nil.
type Models struct {
	// Agent is the name of the agent, for errors.
	Agent     string
	Providers model.Registry
	// Answering are the models that may answer, the agent's own first.
	Answering []*v1alpha1.Model
	// Summarizer writes the summaries; nil is the agent's own model.
	Summarizer *v1alpha1.Model
	// Key returns the API key of a model, the zero Value for a model without one.
	Key func(*v1alpha1.Model) (secret.Value, error)
	// Priced demands that the price of a fallback is known.
	Priced bool

	Prompt    string
	Inputs    map[string]json.RawMessage
	Transport *http.Transport
	Blob      func(id string) ([]byte, error)
}

// open begins a conversation with the agent's model, and with its fallbacks behind it
// where there are any.
func (m *Models) open(p message.Prompt) (loop.Model, error) {
	if len(m.Answering) == 1 {
		return m.begin(m.Answering[0], p)
	}
	var choices []fallback.Choice
	for i, declared := range m.Answering {
		choices = append(choices, fallback.Choice{Name: declared.Name, Open: func() (model.Conversation, error) {
			if _, known := m.Providers.Price(&declared.Spec); i > 0 && !known && m.Priced {
				return nil, reason.New(reason.BudgetExceeded, "model %q: limits.maxCost is set and the price is unknown", declared.Name).
					WithHint("declare spec.pricing of the Model")
			}
			return m.begin(declared, p)
		}})
	}
	return fallback.New(choices, fallback.Options{})
}

// begin begins a conversation with one model.
func (m *Models) begin(declared *v1alpha1.Model, p message.Prompt) (model.Conversation, error) {
	key, err := m.Key(declared)
	if err != nil {
		return nil, err
	}
	inputs, err := json.Marshal(m.Inputs)
	if err != nil {
		return nil, fmt.Errorf("inputs: %w", err)
	}
	setup := model.Setup{
		Name: declared.Name, Spec: &declared.Spec, Prompt: m.Prompt, Inputs: inputs, Transport: m.Transport, Blob: m.Blob,
	}
	if !key.IsZero() {
		setup.APIKey = func(context.Context) (string, error) { return key.Reveal(), nil }
		setup.KeySource = key.Source()
	}
	return m.Providers.Open(setup, p)
}

// closing returns what releases a conversation's connections.
func closing(conversation any) func() {
	c, ok := conversation.(io.Closer)
	if !ok {
		return func() {}
	}
	return func() { _ = c.Close() } // nothing can be done about a connection that fails to close
}
