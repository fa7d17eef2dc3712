package plan

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model"
)

// Ref names a model in events.
func Ref(m *v1alpha1.Model) message.ModelRef {
	return message.ModelRef{Name: m.Name, Provider: string(m.Spec.Provider), Model: m.Spec.Model}
}

// Asked is the model that a run asks, with its variant: how hard it is to think.
func Asked(m *v1alpha1.Model) message.ModelRef {
	ref := Ref(m)
	if m.Spec.Parameters != nil {
		var p struct {
			Effort string `json:"reasoningEffort"`
		}
		if json.Unmarshal(m.Spec.Parameters.Raw, &p) == nil { // the provider has checked it
			ref.Variant = p.Effort
		}
	}
	return ref
}

// Models are the models of a plan, with what their providers say about them.
type Models struct {
	own        *v1alpha1.Model
	fallbacks  []*v1alpha1.Model
	summarizer *v1alpha1.Model
	providers  model.Registry
}

// Models are those of the plan.
func (p *Plan) Models() Models {
	return Models{own: p.Model, fallbacks: p.Fallbacks, summarizer: p.Summarizer, providers: p.registries.Providers}
}

// Answering are the models that may answer, the agent's own first.
func (m Models) Answering() []*v1alpha1.Model {
	return append([]*v1alpha1.Model{m.own}, m.fallbacks...)
}

// All are all models that may be asked anything, the agent's own first.
func (m Models) All() []*v1alpha1.Model {
	all := m.Answering()
	if m.summarizer != nil {
		all = append(all, m.summarizer)
	}
	return all
}

// RequirePinned returns an error if the run, or a run below it, may ask a model whose name
// does not say which version it is.
func (p *Plan) RequirePinned() error {
	for _, m := range p.Asked(p.registries.Providers) {
		if p.registries.Providers.Pinned(&m.Spec) || p.Carried != nil && m == p.Model {
			continue
		}
		return reason.Usagef("model %q: %s is not pinned: %s may answer with another model tomorrow", m.Name, m.Spec.Model, m.Spec.Provider).
			WithHint("name a version in spec.model, such as gpt-5-mini-2025-08-07, or leave --ci out")
	}
	return nil
}

// window is the context window of a model in tokens; 0 is unknown.
func (m Models) window(of *v1alpha1.Model) int64 { return m.providers.Window(&of.Spec) }

// answer is the most that an answer of the agent's own model may hold; 0 is unknown.
func (m Models) answer() int64 { return m.providers.OutputLimit(&m.own.Spec) }

// longest is the most that an answer of any model that may answer holds.
func (m Models) longest() int64 {
	var most int64
	for _, one := range m.Answering() {
		most = max(most, m.providers.OutputLimit(&one.Spec))
	}
	return most
}
