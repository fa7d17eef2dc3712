package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/fallback"
	"agentctl.dev/agentctl/runner/model/provider"
)

func refOf(m *v1alpha1.Model) message.ModelRef {
	return message.ModelRef{Name: m.Name, Provider: string(m.Spec.Provider), Model: m.Spec.Model}
}

// models are all that may answer: the agent's own first.
func (p *plan) models() []*v1alpha1.Model {
	return append([]*v1alpha1.Model{p.Model}, p.Fallbacks...)
}

// everyModel is all that may be asked anything, the agent's own first.
func (p *plan) everyModel() []*v1alpha1.Model {
	all := p.models()
	if p.Summarizer != nil {
		all = append(all, p.Summarizer)
	}
	return all
}

// conversation opens a conversation with the declared model, and behind it with
// its fallbacks when there are any.
func (s *session) conversation(keys credentials, p message.Prompt) (loop.Model, error) {
	if len(s.Fallbacks) == 0 {
		return s.talk(s.Model, keys, p)
	}
	var choices []fallback.Choice
	for i, m := range s.models() {
		choices = append(choices, fallback.Choice{Name: m.Name, Open: func() (model.Conversation, error) {
			if _, known := provider.All().Price(&m.Spec); i > 0 && !known && s.Limits.MaxCost != "" {
				return nil, reason.New(reason.BudgetExceeded, "model %q: limits.maxCost is set and the price is unknown", m.Name).
					WithHint("declare spec.pricing of the Model")
			}
			return s.talk(m, keys, p)
		}})
	}
	return fallback.New(choices, fallback.Options{})
}

// summarizer sets who writes the summaries, where that is not the agent's own
// model. What it returns must be called.
func (s *session) summarizer(keys credentials, c *loop.Context) (closer func(), err error) {
	m := s.Summarizer
	if m == nil {
		return func() {}, nil
	}
	talk, err := s.talk(m, keys, message.Prompt{})
	if err != nil {
		return nil, fmt.Errorf("agent %q: spec.context.modelRef: %w", s.Agent.Name, err)
	}
	c.Summarizer = discreetly(talk, s.redactor.Load())
	c.SummarizerRef, c.SummarizerWindow = refOf(m), provider.All().Window(&m.Spec)
	return closing(talk), nil
}

// closing returns what lets go of a conversation's connections.
func closing(talk any) func() {
	c, ok := talk.(io.Closer)
	if !ok {
		return func() {}
	}
	return func() { _ = c.Close() } // nothing is left to be done about a connection
}

// talk opens a conversation with one model.
func (s *session) talk(m *v1alpha1.Model, keys credentials, p message.Prompt) (model.Conversation, error) {
	key, err := keys.of(m)
	if err != nil {
		return nil, err
	}
	inputs, err := json.Marshal(s.inputs)
	if err != nil {
		return nil, fmt.Errorf("inputs: %w", err)
	}
	setup := model.Setup{
		Name: m.Name, Spec: &m.Spec, Prompt: s.prompt, Inputs: inputs, Transport: s.transport, Blob: s.journal.GetBlob,
	}
	if !key.IsZero() {
		setup.APIKey = func(context.Context) (string, error) { return key.Reveal(), nil }
		setup.KeySource = key.Source()
	}
	return provider.All().Open(setup, p)
}
