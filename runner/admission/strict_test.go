package admission

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

const risky = `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec:
  modelRef: {name: moving}
  instructions: |
    Work on ${inputs.count} of ${inputs.kind}.
    The title is ${inputs.title}, not $${inputs.title}, and ${inputs.list}.
  tools: [{name: open}, {name: host}, {name: fetched}, {name: fixed}]
  policyRefs: [{name: p}]
  inputs:
    schema:
      type: object
      properties: {count: {type: integer}, kind: {type: string, enum: [x, z]}, title: {type: string}, list: {type: array}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: moving}
spec: {provider: openai, model: gpt-5-mini}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: fixed}
spec: {provider: openai, model: gpt-5-mini-2025-08-07}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: open}
spec:
  source: {exec: {command: [sh]}}
  risk: R1
  parameters: {type: object}
  network: {mode: Proxy, allow: ["api.github.com:443", "*:443"]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: host}
spec: {source: {exec: {command: [sh]}}, risk: R1, parameters: {type: object}, network: {mode: Host}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: fetched}
spec: {source: {mcp: {stdio: {command: [npx, -y, "@scope/server"]}}}, risk: R1}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: fixed}
spec: {source: {mcp: {stdio: {command: [npx, -y, "@scope/server@1.2.3"]}}}, risk: R1}
---
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: p}
spec:
  rules:
  - {name: none, match: {tools: [nothing]}, action: deny}
  - {name: never, match: {tools: [open]}, when: "false", action: deny}
  - {name: good, match: {tools: [open]}, action: allow}
`

func TestStrictFindsRisksWithTheirPlaces(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.yaml", []byte(risky), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(strict bool) map[string]int {
		_, _, found := Read(t.Context(), []string{"."}, nil, Options{Strict: strict, Models: provider.All(), Tools: sources.All()})
		got := map[string]int{}
		for _, f := range found {
			if strict && f.Severity != manifest.Error {
				t.Errorf("%v is a warning", f)
			}
			got[string(f.Rule)+" "+f.Position.String()+" "+f.Path]++
			if f.Rule != manifest.RuleNeverMatches && f.Suggestion == "" {
				t.Errorf("%v does not say how to fix it", f)
			}
		}
		return got
	}
	never := map[string]int{
		"rule-never-matches a.yaml:55:25 spec.rules[0].match": 1,
		"rule-never-matches a.yaml:56:49 spec.rules[1].when":  1,
	}
	if diff := cmp.Diff(never, read(false)); diff != "" {
		t.Errorf("not strict (-want +got):\n%s", diff)
	}
	want := map[string]int{
		"model-unpinned a.yaml:19:33 spec.model":                         1,
		"network-open a.yaml:33:56 spec.network.allow[1]":                1,
		"network-open a.yaml:38:95 spec.network.mode":                    1,
		"program-unpinned a.yaml:43:50 spec.source.mcp.stdio.command[2]": 1,
		"prompt-untrusted a.yaml:8:18 spec.instructions":                 1,
		"prompt-untrusted a.yaml:8:61 spec.instructions":                 1,
		"rule-never-matches a.yaml:55:25 spec.rules[0].match":            1,
		"rule-never-matches a.yaml:56:49 spec.rules[1].when":             1,
	}
	if diff := cmp.Diff(want, read(true)); diff != "" {
		t.Errorf("strict (-want +got):\n%s", diff)
	}
}

func TestAPackageWithoutAVersionIsUnpinned(t *testing.T) {
	for name, c := range map[string]struct {
		command []string
		want    string
	}{
		"npm": {[]string{"npx", "-y", "server"}, "server"}, "latest": {[]string{"/usr/bin/npx", "server@latest"}, "server@latest"}, "scoped": {[]string{"npx", "@a/b"}, "@a/b"},
		"version": {[]string{"npx", "@a/b@1.0.0"}, ""}, "python": {[]string{"uvx", "server==1.0"}, ""}, "folder": {[]string{"npx", "./server"}, ""}, "other": {[]string{"node", "server"}, ""},
		"none": {[]string{"npx", "--help"}, ""}, "empty": {nil, ""},
	} {
		if _, got := unpinnedPackage(c.command); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
