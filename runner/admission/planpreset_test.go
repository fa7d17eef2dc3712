package admission

import (
	"os"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/preset"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

const presetAgents = `
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: big}
spec: {provider: scripted, model: claude-big, scripted: {steps: [{say: done}]}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: gpt}
spec: {provider: scripted, model: gpt-big, scripted: {steps: [{say: done}]}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: cheap}
spec: {provider: scripted, model: small, contextWindow: 8000, scripted: {steps: [{say: notes}]}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: summaries}
spec: {preset: compaction, modelRef: {name: cheap}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: planner}
spec: {preset: plan, modelRef: {name: big}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: own}
spec:
  preset: plan
  modelRef: {name: big}
  instructions: Only count.
  tools: [{name: read}]
  context: {modelRef: {name: gpt}}
`

func TestAPresetFillsInWhatAnAgentLeavesOpen(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.yaml", []byte(presetAgents), 0o600); err != nil {
		t.Fatal(err)
	}
	_, catalog, found := Read(t.Context(), []string{"."}, nil, Options{Models: provider.All(), Tools: sources.All()})
	if found.HasErrors() {
		t.Fatal(found)
	}
	resolve := func(agent, model string) *Plan {
		t.Helper()
		p, err := catalog.Resolve(ResolveOptions{Agent: agent, Model: model})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}

	p := resolve("planner", "")
	if !strings.HasPrefix(p.Agent.Spec.Instructions, preset.Base("claude-big")) || !strings.Contains(p.Agent.Spec.Instructions, "Plan the task") {
		t.Errorf("instructions are %q", p.Agent.Spec.Instructions)
	}
	if p.Summarizer == nil || p.Summarizer.Name != "cheap" {
		t.Errorf("the agent with preset compaction does not name the model of summaries: %+v", p.Summarizer)
	}
	bash := false
	for _, tool := range p.Tools {
		if tool.Tool.Name == "bash" {
			bash = true
			if got := tool.Tool.Spec.WorkspaceAccess; got != v1alpha1.AccessReadOnly {
				t.Errorf("the shell of preset plan has access %q", got)
			}
		}
	}
	if !bash {
		t.Error("preset plan has no shell")
	}
	if p := resolve("planner", "gpt"); !strings.HasPrefix(p.Agent.Spec.Instructions, preset.Base("gpt-big")) {
		t.Errorf("the base text does not follow the model: %q", p.Agent.Spec.Instructions)
	}

	p = resolve("own", "")
	if p.Agent.Spec.Instructions != "Only count." || len(p.Tools) != 1 {
		t.Errorf("what the agent says itself does not win: %q, %d tools", p.Agent.Spec.Instructions, len(p.Tools))
	}
	if p.Summarizer == nil || p.Summarizer.Name != "gpt" {
		t.Errorf("context.modelRef does not win over preset compaction: %+v", p.Summarizer)
	}
}

func TestAnEntryOnlyNarrowsTheAccessOfATool(t *testing.T) {
	for _, c := range []struct{ tool, entry, want v1alpha1.WorkspaceAccess }{
		{v1alpha1.AccessReadWrite, v1alpha1.AccessReadOnly, v1alpha1.AccessReadOnly},
		{v1alpha1.AccessReadOnly, v1alpha1.AccessReadWrite, v1alpha1.AccessReadOnly},
		{v1alpha1.AccessNone, v1alpha1.AccessReadOnly, v1alpha1.AccessNone},
		{v1alpha1.AccessReadWrite, v1alpha1.AccessNone, v1alpha1.AccessNone},
		{v1alpha1.AccessReadOnly, "", v1alpha1.AccessReadOnly},
	} {
		if got := narrower(c.tool, c.entry); got != c.want {
			t.Errorf("%q narrowed by %q is %q, want %q", c.tool, c.entry, got, c.want)
		}
	}
}
