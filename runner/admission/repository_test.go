package admission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/runner/manifest"
)

// brought resolves a plan in which a repository brings a policy.
func brought(t *testing.T, text string) (*Plan, manifest.Findings) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, manifest.RepositoryPolicies, "p.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := admit(t, t.TempDir(), `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {modelRef: {name: m}, tools: [{name: write}], policyRefs: [{name: strict}], subagents: [{name: b}]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: b}
spec: {modelRef: {name: m}, tools: [{name: write}]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: strict}
spec: {rules: [{name: stop, match: {tools: [write]}, action: deny}]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec: {provider: scripted, scripted: {steps: [{say: x}]}}
`)
	p, err := c.Resolve(ResolveOptions{Agent: "a"})
	if err != nil {
		t.Fatal(err)
	}
	_, found := c.Bring(t.Context(), p, dir)
	return p, found
}

const strict = `apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: strict}
spec:
  rules: [{name: stop, match: {tools: [write]}, action: allow}]
  default: allow
`

// A policy of a repository takes the place of no other, whatever it is called, and holds
// below as it was found, also in a plan that was read from a journal.
func TestWhatARepositoryBringsHasANameOfItsOwn(t *testing.T) {
	p, found := brought(t, strict)
	if found.HasErrors() {
		t.Fatal(found)
	}
	stored, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	again := &Plan{}
	if err := json.Unmarshal(stored, again); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*Plan{"new": p, "from a journal": again} {
		child, ok := p.Child("b", "")
		if !ok {
			t.Fatal("b is no subagent")
		}
		for of, p := range map[string]*Plan{"a": p, "b": child} {
			if len(p.Ceilings) != 1 || !p.Ceilings[0].Repository || p.Ceilings[0].Policies[0].Name != "repository:strict" || p.Ceilings[0].Policies[0].Spec.Default != "" {
				t.Errorf("%s, %s: ceilings %+v", name, of, p.Ceilings)
				continue
			}
			if c := p.CompiledCeilings(); !c[0].Tightens || c[0].Policies[0].Name() != "repository:strict" {
				t.Errorf("%s, %s: %v, %s", name, of, c[0].Tightens, c[0].Policies[0].Name())
			}
			if got := p.Repository(); len(got) != 1 || got[0] != "strict" {
				t.Errorf("%s, %s: brought %v", name, of, got)
			}
		}
		if p.Policies[0].Name != "strict" || p.Policies[0].Spec.Rules[0].Action != "deny" {
			t.Errorf("%s: the policy of the manifests is %+v", name, p.Policies[0])
		}
	}
}

func TestABrokenPolicyOfARepositoryIsAnErrorOfItsFile(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"twice":     {strict + "---\n" + strict, "declared twice"},
		"no schema": {strings.Replace(strict, "action: allow", "action: perhaps", 1), "perhaps"},
		"version":   {strings.Replace(strict, "v1alpha1", "v9", 1), "is not an apiVersion"},
		"a bomb": {strings.Replace(strict, "action: allow",
			"action: deny, when: \"paths.exists(a, paths.exists(b, paths.exists(c, paths.exists(d, a.clean + b.clean == c.clean + d.clean))))\"", 1), "may cost"},
		"too many rules": {strings.Replace(strict, "rules: [", "permissions: ["+strings.Repeat("{permission: bash, action: deny}, ", maxRepositoryRules)+"]\n  rules: [", 1), "more than 200"},
		"no name":        {strings.Replace(strict, "name: strict", `name: ""`, 1), "name"},
		"another kind":   {strings.Replace(strict, "kind: Policy", "kind: Tool", 1), "brings policies only"},
	} {
		p, found := brought(t, c.text)
		var text []string
		for _, f := range found {
			text = append(text, f.Position.String()+": "+f.Message)
		}
		if all := strings.Join(text, "\n"); !found.HasErrors() || !strings.Contains(all, c.want) || !strings.Contains(all, "p.yaml") {
			t.Errorf("%s: found %s", name, all)
		}
		if len(p.Ceilings) > 0 {
			t.Errorf("%s: it counts", name)
		}
	}
}

// A pattern of a few bytes can compile to megabytes: it is refused where it is written,
// before anything is compiled.
func TestPatternsOfARepositoryAreBounded(t *testing.T) {
	for name, tt := range map[string]struct{ body, want string }{
		"condition": {`rules: [{name: r, match: {tools: [write]}, when: 'call.args.path.matches(r"^\pL{900}7$")', action: ask}]`, "at most 10000"},
		"message":   {`rules: [{name: r, match: {tools: [write]}, action: ask, messageExpression: '"x".matches(r"^\pL{900}7$") ? "a" : "b"'}]`, "at most 10000"},
		"variable":  {`variables: [{name: v, expression: '"x".matches(r"^\pL{900}7$")'}]`, "at most 10000"},
		"computed":  {`rules: [{name: r, match: {tools: [write]}, when: 'call.args.path.matches(call.args.content)', action: ask}]`, "is computed"},
		"together":  {`rules: [{name: r, match: {tools: [write]}, when: '` + strings.Repeat(`call.args.path.matches(r"\pL{7}") || `, 6) + `false', action: ask}]`, "more than 50000"},
	} {
		p, found := brought(t, "apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec:\n  "+tt.body+"\n")
		if !found.HasErrors() || len(p.Ceilings) > 0 {
			t.Errorf("%s: it is used: %v", name, found)
			continue
		}
		if f := found[0]; f.Position.Line != 5 || !strings.HasSuffix(f.Position.File, "p.yaml") || !strings.Contains(f.Message, tt.want) {
			t.Errorf("%s: %s: %s, want %q", name, f.Position, f.Message, tt.want)
		}
	}
	if _, found := brought(t, "apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec:\n  rules: [{name: r, match: {tools: [write]}, when: 'call.args.path.matches(r\"^\\w+$\")', action: ask}]\n"); found.HasErrors() {
		t.Error(found)
	}
}
