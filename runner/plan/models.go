package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
	coders     []*v1alpha1.Model
	providers  model.Registry
}

// Models are those of the plan.
func (p *Plan) Models() Models {
	return Models{own: p.Model, fallbacks: p.Fallbacks, summarizer: p.Summarizer, coders: p.Coders, providers: p.registries.Providers}
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
	return append(all, m.coders...)
}

// RequirePinned returns an error if the run, or a run below it, may ask a model whose name
// does not say which version it is.
func (p *Plan) RequirePinned() error {
	for _, m := range p.Asked(p.registries.Providers) {
		if p.registries.Providers.Pinned(&m.Spec) || p.Carried != nil && m == p.Model {
			continue
		}
		server, how := model.ToPin(&m.Spec)
		return reason.Usagef("model %q: %s is not pinned: %s may answer with another model tomorrow", m.Name, m.Spec.Model, server).
			WithHint(how + " (spec.model), or leave --ci out")
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

// Relayed is the model that the program of a coding agent of others asks, in the API with
// that path: the one that its Tool names, or the first of those that answer for the agent.
// A call may name one of them.
func (p *Plan) Relayed(program v1alpha1.CodingProgram, name, path string) (*v1alpha1.Model, error) {
	models := p.Models()
	var offered []*v1alpha1.Model
	for _, m := range models.All() {
		if program.ModelRef != nil && m.Name == program.ModelRef.Name {
			offered = append([]*v1alpha1.Model{m}, offered...)
		} else if slices.Contains(models.Answering(), m) {
			offered = append(offered, m)
		}
	}
	var names []string
	for _, m := range offered {
		of, ok := models.providers.Of(m.Spec.Provider)
		speaks := ok && of.Relay(path)
		if speaks && (name == "" || name == m.Name) {
			return m, nil
		}
		if speaks {
			names = append(names, m.Name)
		} else if m.Name == name || name == "" && program.ModelRef != nil && m.Name == program.ModelRef.Name {
			return nil, fmt.Errorf("model %q: provider %s does not speak %s, which %s needs", m.Name, m.Spec.Provider, path, program.Agent)
		}
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("model %q is not offered to %s; offered are: %s", name, program.Agent, strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("none of the agent's models speaks %s, which %s needs: name a Model as modelRef in spec.source.builtin.coding.programs of the Tool", path, program.Agent)
}

// Relay is what the endpoint of such a model needs to know of it: its address, the most that
// an answer holds, its window, and what its tokens cost, and can cost at most.
func (m Models) Relay(of *v1alpha1.Model) (address string, output, window int64, price func(message.Usage) (cost, most message.Cost, known bool)) {
	address, output, window = of.Spec.BaseURL, m.providers.OutputLimit(&of.Spec), m.providers.Window(&of.Spec)
	if provider, ok := m.providers.Of(of.Spec.Provider); ok && address == "" {
		address = provider.BaseURL
	}
	known, ok := m.providers.Price(&of.Spec)
	return address, output, window, func(u message.Usage) (cost, most message.Cost, priced bool) {
		if !ok {
			return 0, 0, false
		}
		cost, err := known.Cost(u)
		if err != nil {
			return 0, 0, false
		}
		most, err = known.Most(u)
		return cost, most, err == nil
	}
}
