package plan

import (
	"testing"

	"agentctl.dev/agentctl/runner/model/provider"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/admission"
)

func TestAWellKnownModelIsShortenedInTime(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		spec   v1alpha1.ModelSpec
		want   int64
	}{
		"known":    {"nobody has to declare it", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAnthropic, Model: "claude-haiku-4-5"}, 200_000},
		"declared": {"who does is obeyed", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAnthropic, Model: "claude-haiku-4-5", ContextWindow: 50_000}, 50_000},
		"unknown":  {"and a guess is worse than none", v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, Model: "mine", BaseURL: "http://127.0.0.1/v1"}, 0},
	} {
		p := &Plan{Plan: &admission.Plan{Model: &v1alpha1.Model{Spec: c.spec}, Agent: &v1alpha1.Agent{}}, registries: Registries{Providers: provider.All()}}
		got := p.LoopContext(message.Prompt{})
		if got.Window != c.want {
			t.Errorf("%s: %d, want %d: %s", name, got.Window, c.want, c.reason)
		}
		// The window is shared with the model's own answer, not with a fallback's.
		if limit := provider.All().OutputLimit(&c.spec); got.ReserveOutput != limit {
			t.Errorf("%s: %d tokens are reserved for the answer, want %d", name, got.ReserveOutput, limit)
		}
	}
}
