package agentctl_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/policies"
	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// TestShippedPoliciesAreTested: all cases pass, each rule is seen at work, and
// nearly every mistake is noticed.
func TestShippedPoliciesAreTested(t *testing.T) {
	const score = 95
	for _, name := range policies.Names() {
		t.Run(name, func(t *testing.T) {
			report, err := runner.TestPolicies(t.Context(), runner.PolicyTestOptions{Paths: []string{filepath.Join("policies", name)}, Mutate: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Policies) != 1 || report.Policies[0].Name != name {
				t.Fatalf("the folder holds %d policies, want one named %s", len(report.Policies), name)
			}
			p := report.Policies[0]
			for _, c := range p.Cases {
				if !c.Pass {
					t.Errorf("%s: %s: want %+v, got %+v %s", c.Position, c.Name, c.Want, c.Got, c.Problem)
				}
			}
			if p.Coverage == nil || !p.Coverage.Complete() {
				t.Errorf("coverage %+v, want all of it", p.Coverage)
			}
			if p.Mutation == nil || p.Mutation.Score < score {
				t.Errorf("mutation %+v, want a score of %d", p.Mutation, score)
			}
		})
	}
}

// TestCasesBesideManifestsPass judges the cases of the policies in examples.
func TestCasesBesideManifestsPass(t *testing.T) {
	folders, err := filepath.Glob("manifests/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() || !holdsCases(t, folder) {
			continue
		}
		report, err := runner.TestPolicies(t.Context(), runner.PolicyTestOptions{Paths: []string{folder}})
		if err != nil || report.Failed > 0 {
			t.Errorf("%s: %+v, %v", folder, report, err)
		}
	}
}

func holdsCases(t *testing.T, folder string) bool {
	t.Helper()
	set, _ := manifest.Load(t.Context(), []string{folder}, nil)
	for _, d := range set.Documents {
		if p, ok := d.Object.(*v1alpha1.Policy); ok && len(p.Spec.Tests) > 0 {
			return true
		}
	}
	return false
}

// TestShippedPoliciesAreListed wherever somebody looks for them.
func TestShippedPoliciesAreListed(t *testing.T) {
	for _, file := range []string{"policies/README.md", "docs/policies.md", "api/v1alpha1/agent_types.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range policies.Names() {
			if !strings.Contains(string(text), name) {
				t.Errorf("%s does not name the policy %s", file, name)
			}
		}
	}
}

// TestShippedPoliciesNeedNoManifest: an agent names them, and a manifest of its
// own with such a name takes the place.
func TestShippedPoliciesNeedNoManifest(t *testing.T) {
	agent := "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  modelRef: {name: m}\n  policyRefs: [{name: " +
		strings.Join(policies.Names(), "}, {name: ") + "}]\n---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {provider: scripted, model: x, scripted: {steps: [{say: hi}]}}\n"
	if c := complaint(t, agent); c != "" {
		t.Errorf("refused:\n%s", c)
	}
	if c := complaint(t, strings.Replace(agent, "name: baseline", "name: basline", 1)); !strings.Contains(c, "baseline") {
		t.Errorf("a misspelt name is not explained: %q", c)
	}
	own := agent + "---\napiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: baseline}\nspec: {rules: [{name: x, when: nonsense, action: deny}]}\n"
	if c := complaint(t, own); !strings.Contains(c, "nonsense") {
		t.Errorf("a manifest does not take the place of the shipped policy: %q", c)
	}
}

// TestNobodyIsAskedInCI: whatever a script does, and whatever a tool is given.
func TestNobodyIsAskedInCI(t *testing.T) {
	set, found := manifest.Load(t.Context(), []string{"policies/ci/policy.yaml"}, nil)
	if found.HasErrors() {
		t.Fatal(found)
	}
	p, ok := set.Documents[0].Object.(*v1alpha1.Policy)
	if !ok {
		t.Fatalf("%s is no policy", set.Documents[0])
	}
	var tools []policy.Tool
	for _, name := range builtin.Names() {
		b, _ := builtin.Lookup(name)
		tools = append(tools, policy.Tool{Name: b.Name, Builtin: b.Name, Source: "builtin", Risk: b.Risk, Effects: b.Effects, Category: b.Category, Schema: b.Parameters})
	}
	tools = append(tools, policy.Tool{Name: "foreign", Source: "plugin", Effects: []v1alpha1.Effect{v1alpha1.EffectNetwork}})
	compiled, problems := policy.Compile(p, tools)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	engine := policy.NewEngine([]*policy.Compiled{compiled}, policy.Context{Workspace: policy.Workspace{Root: t.TempDir()}, Tools: tools})
	scripts := corpusScripts(t)
	if len(scripts) < 60 {
		t.Fatalf("the corpus holds %d scripts", len(scripts))
	}
	allowed := 0
	for _, tool := range tools {
		for _, s := range scripts {
			args, err := json.Marshal(map[string]string{"command": s, "path": s, "pattern": s, "content": s, "oldString": s, "newString": s})
			if err != nil {
				t.Fatal(err)
			}
			d, err := engine.Decide(t.Context(), message.ToolCall{Tool: tool.Name, Args: args})
			if err != nil || d.Action == message.Ask {
				t.Errorf("%s %q: %s by %s, %v", tool.Name, s, d.Action, d.Rule, err)
			}
			if tool.Name == "bash" && d.Action == message.Allow {
				allowed++
			}
		}
	}
	if allowed == 0 {
		t.Error("no script of the corpus is allowed")
	}
}

func corpusScripts(t *testing.T) (scripts []string) {
	t.Helper()
	text, err := os.ReadFile("runner/policy/shell/testdata/corpus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct {
		Command string `json:"command"`
	}
	if err := yaml.Unmarshal(text, &entries); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		scripts = append(scripts, e.Command)
	}
	return scripts
}
