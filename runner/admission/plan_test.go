package admission

import (
	"encoding/json"
	"os"
	"testing"

	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

const summarised = `
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: big}
spec: {provider: scripted, scripted: {steps: [{say: done}]}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: cheap}
spec: {provider: scripted, contextWindow: 8000, scripted: {steps: [{say: notes}]}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec:
  modelRef: {name: big}
  context: {modelRef: {name: cheap}, compactAtPercent: 0}
`

func TestPlanCarriesTheModelThatSummarises(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.yaml", []byte(summarised), 0o600); err != nil {
		t.Fatal(err)
	}
	_, catalog, found := Read(t.Context(), []string{"."}, nil, Options{Models: provider.All(), Tools: sources.All()})
	if found.HasErrors() {
		t.Fatal(found)
	}
	for name, c := range map[string]struct {
		reason, model, want string
	}{
		"another":   {"the model of the summaries is part of the plan", "", "cheap"},
		"the same":  {"a run with that model needs no second one", "cheap", ""},
		"of itself": {"the agent's own is named by default", "big", "cheap"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := catalog.Resolve(ResolveOptions{Model: c.model})
			if err != nil {
				t.Fatal(err)
			}
			// As a resumed run reads it: defaults are not applied again.
			b, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			var again Plan
			if err := json.Unmarshal(b, &again); err != nil {
				t.Fatal(err)
			}
			got := ""
			if again.Summarizer != nil {
				got = again.Summarizer.Name
			}
			if at := again.Agent.Spec.Context.CompactAtPercent; got != c.want || at == nil || *at != 0 {
				t.Errorf("%s: %q and compactAtPercent %v, want %q and 0", c.reason, got, at, c.want)
			}
		})
	}
}
