package agentctl_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/runner"
	"agentctl.dev/agentctl/runner/templates"
)

// TestExamplesAreComplete: each of the examples that agentctl init writes has what a person
// needs to trust it. That their tests pass is seen in package runner.
func TestExamplesAreComplete(t *testing.T) {
	index := exampleText(t, "docs/examples.md")
	for _, template := range templates.All() {
		t.Run(template.Name, func(t *testing.T) {
			dir := filepath.Join("manifests", template.Name)
			report, err := runner.Validate(t.Context(), runner.ValidateOptions{Paths: []string{dir}, Strict: true, State: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if errs, warnings := report.Findings.Count(); errs+warnings > 0 {
				t.Errorf("findings: %+v", report.Findings)
			}
			agent, policy, test := exampleText(t, filepath.Join(dir, "agent.yaml")), exampleText(t, filepath.Join(dir, "policy.yaml")), exampleText(t, filepath.Join(dir, "test.yaml"))
			for _, part := range []string{"  evidence:\n", "  output:\n", "  limits: {maxSteps: ", "approvals: {onAsk: Deny}"} {
				if !strings.Contains(agent, part) {
					t.Errorf("the agent has no %q", part)
				}
			}
			if !strings.Contains(policy, "  default: deny\n") || !strings.Contains(policy, "  tests:\n") {
				t.Error("the policy does not deny by default, or has no cases")
			}
			if !strings.Contains(test, "result.reason == 'EvidenceMissing'") || !strings.Contains(test, "record: testdata/") {
				t.Error("no model misbehaves, or there is no recording")
			}
			pinnedModels(t, dir)
			pipelines(t, dir, template.Name)
			if !strings.Contains(index, "["+template.Name+"](../manifests/"+template.Name+"/README.md)") {
				t.Error("docs/examples.md does not list it")
			}
			if readme := exampleText(t, filepath.Join(dir, "README.md")); !strings.Contains(readme, "agentctl test -f "+dir) || !strings.Contains(readme, "agentctl replay "+dir) {
				t.Error("its README does not say how to run it without a key")
			}
		})
	}
}

func exampleText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pinnedModels looks for a model whose name says no day: what answers could change.
func pinnedModels(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		for _, m := range regexp.MustCompile(`(?m)^  model: (.*)$`).FindAllStringSubmatch(exampleText(t, file), -1) {
			seen++
			if !regexp.MustCompile(`-20\d\d-?\d\d-?\d\d$`).MatchString(m[1]) {
				t.Errorf("%s: the model %s is not pinned", file, m[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no model is named")
	}
}

// pipelines reads the pipelines of an example as what they are.
func pipelines(t *testing.T, dir, name string) {
	t.Helper()
	for _, ci := range templates.Pipelines() {
		text := exampleText(t, filepath.Join(dir, "ci", ci+".yaml"))
		var parsed map[string]any
		if err := yaml.UnmarshalStrict([]byte(text), &parsed); err != nil {
			t.Errorf("%s: %v", ci, err)
		}
		for _, command := range []string{"agentctl validate --strict -f ", "agentctl test -f ", "agentctl run -f ", "agents/" + name, "OPENAI_API_KEY"} {
			if !strings.Contains(text, command) {
				t.Errorf("%s: the pipeline does not hold %q", ci, command)
			}
		}
	}
}
