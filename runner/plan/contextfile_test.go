package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

const contextAgent = `
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec:
  modelRef: {name: m}
  contextFiles: [AGENTS.md, .env, LINK.md, OUTSIDE.md, TOKEN.md]
  policyRefs: [POLICY]
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec: {provider: scripted, model: script, scripted: {steps: [{say: done}]}}
---
`

// contextPrompt is the system prompt that a run in a folder of a repository gives
// its model, with the warnings of the run.
func contextPrompt(t *testing.T, policies, ref string) (system string, warnings []string) {
	t.Helper()
	top, work := t.TempDir(), ""
	top, err := filepath.EvalSymlinks(top)
	if err != nil {
		t.Fatal(err)
	}
	work = filepath.Join(top, "repo", "part")
	for name, text := range map[string]string{
		"repo/.git/HEAD": "x", "repo/AGENTS.md": "CANARY-above", "repo/part/.env": "CANARY-secret", "outside.md": "CANARY-outside",
		"repo/part/TOKEN.md": "ghp_0123456789abcdefghijABCDEFGHIJ456789 CANARY-token", "agent.yaml": strings.ReplaceAll(contextAgent, "POLICY", ref) + policies,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"LINK.md": ".env", "OUTSIDE.md": "../../outside.md"} {
		if err := os.Symlink(to, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := New(t.Context(), Options{
		Paths: []string{filepath.Join(top, "agent.yaml")}, Workspace: work, Prompt: "go", Registries: Registries{Providers: provider.All(), Sources: sources.All()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p.SystemPrompt(t.Context(), work, v1alpha1.IsolationNone)
}

func TestContextFilesThatMayNotBeReadAreLeftOut(t *testing.T) {
	const env = `
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: p}
spec:
`
	tests := map[string]struct {
		reason, ref, policy string
		seen, warned        []string
	}{
		"no policy":   {"the author of the manifest has named them", "", "", []string{"above", "secret", "token"}, []string{"OUTSIDE.md is left out: it is a link that leads out of the workspace"}},
		"list":        {"an entry for read counts for the runner, too, behind links as well", "{name: p}", env + "  permissions: [{permission: read, pattern: '*.env', action: deny}]", []string{"above", "token"}, []string{".env is left out: it is refused by p/permissions", "LINK.md", "OUTSIDE.md"}},
		"rule":        {"a rule about read does", "{name: p}", env + "  rules: [{name: r, match: {tools: [read]}, when: \"paths.exists(p, p.secret)\", action: deny}]", []string{"above", "token"}, []string{".env is left out: it is refused by p/r", "LINK.md", "OUTSIDE.md"}},
		"asked":       {"nobody can be asked", "{name: p}", env + "  rules: [{name: r, match: {tools: [read]}, when: \"paths.exists(p, p.secret)\", action: ask}]", []string{"above", "token"}, []string{".env", "LINK.md", "OUTSIDE.md"}},
		"all denied":  {"who denies read as a whole denies each file", "{name: p}", env + "  rules: [{name: r, match: {tools: [read]}, action: deny}]", nil, []string{"AGENTS.md", ".env", "LINK.md", "OUTSIDE.md", "TOKEN.md"}},
		"default":     {"so does a default", "{name: p}", env + "  default: deny", nil, []string{"AGENTS.md", ".env", "LINK.md", "OUTSIDE.md", "TOKEN.md"}},
		"pack":        {"a pack denies secrets and asks about what is outside, but not about the repository", "{name: baseline}", "", []string{"above", "token"}, []string{".env", "LINK.md", "OUTSIDE.md"}},
		"no secrets":  {"what takes credentials out of results takes them out of context", "{name: no-secrets}", "", []string{"above", "token"}, []string{".env", "LINK.md", "OUTSIDE.md"}},
		"withheld":    {"a rule on results counts", "{name: p}", env + "  rules: [{name: r, match: {tools: [read]}, 'on': Result, when: \"result.text.contains('token')\", action: deny}]", []string{"above", "secret"}, []string{"OUTSIDE.md", "TOKEN.md is left out: the result is withheld by p/r"}},
		"by name":     {"a link counts as what it leads to", "{name: p}", env + "  rules: [{name: r, match: {tools: [read]}, when: \"paths.exists(p, p.clean.endsWith('/.env'))\", action: deny}]", []string{"above", "token"}, []string{".env", "LINK.md is left out: it is refused by p/r", "OUTSIDE.md"}},
		"by argument": {"a file is named as a call would name it", "{name: p}", env + "  rules: [{name: r, match: {tools: [read]}, when: \"call.args.path == '.env'\", action: deny}]", []string{"above", "token"}, []string{".env", "OUTSIDE.md"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			system, warnings := contextPrompt(t, tc.policy, tc.ref)
			for _, canary := range []string{"above", "secret", "outside", "token"} {
				want := false
				for _, s := range tc.seen {
					want = want || s == canary
				}
				if got := strings.Contains(system, "CANARY-"+canary); got != want && !(name == "by argument" && canary == "secret") {
					t.Errorf("%s: %s is in the prompt: %v", tc.reason, canary, got)
				}
			}
			if len(warnings) != len(tc.warned) {
				t.Fatalf("%s: warnings %q", tc.reason, warnings)
			}
			for i, w := range tc.warned {
				if !strings.Contains(warnings[i], w) {
					t.Errorf("%s: warning %q does not tell of %q", tc.reason, warnings[i], w)
				}
			}
			if name == "no secrets" && strings.Contains(system, "ghp_") {
				t.Errorf("%s:\n%s", tc.reason, system)
			}
		})
	}
}
