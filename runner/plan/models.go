package plan

import (
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Ref names a model in events.
func Ref(m *v1alpha1.Model) message.ModelRef {
	return message.ModelRef{Name: m.Name, Provider: string(m.Spec.Provider), Model: m.Spec.Model}
}

// Answering are the models that may answer, the agent's own first.
func (p *Plan) Answering() []*v1alpha1.Model {
	return append([]*v1alpha1.Model{p.Model}, p.Fallbacks...)
}

// Models are all models that may be asked anything, the agent's own first.
func (p *Plan) Models() []*v1alpha1.Model {
	all := p.Answering()
	if p.Summarizer != nil {
		all = append(all, p.Summarizer)
	}
	return all
}

// Window is the context window of a model in tokens; 0 is unknown.
func (p *Plan) Window(m *v1alpha1.Model) int64 { return p.registries.Providers.Window(&m.Spec) }
