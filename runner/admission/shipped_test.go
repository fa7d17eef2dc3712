package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/policies"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

const (
	shippedAgent = "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec: {modelRef: {name: m}, policyRefs: [{name: ci}]}\n---\n" +
		"apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {provider: scripted, scripted: {steps: [{say: hi}]}}\n"
	ownCI = "---\napiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: ci}\nspec: {default: ask}\n"
)

func admitFolder(t *testing.T, files map[string]string) (*Catalog, manifest.Findings) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, c, found := Read(t.Context(), []string{dir}, nil, Options{Models: provider.All(), Tools: sources.All(), Cases: true})
	return c, found
}

func TestAShippedPolicyJudgesWhoNamesIt(t *testing.T) {
	for name, tt := range map[string]struct {
		reason, text string
		shipped      bool
		source       string
		byDefault    string
	}{
		"shipped": {"nothing else has the name", shippedAgent, true, "(shipped)/policies/ci/policy.yaml:", "deny"},
		"own":     {"a manifest takes its place", shippedAgent + ownCI, false, "a.yaml:", "ask"},
	} {
		t.Run(name, func(t *testing.T) {
			c, found := admitFolder(t, map[string]string{"a.yaml": tt.text})
			if found.HasErrors() || (len(found) == 0) != tt.shipped || len(found) > 0 && !strings.Contains(found[0].Message, `takes the place of the shipped policy "ci"`) {
				t.Fatal(found)
			}
			p, err := c.Resolve(ResolveOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Policies) != 1 || string(p.Policies[0].Spec.Default) != tt.byDefault || c.Shipped("ci") != tt.shipped {
				t.Errorf("%s: got %+v, shipped %t", tt.reason, p.Policies, c.Shipped("ci"))
			}
			if source := p.Sources["policy/ci"]; !strings.Contains(source, tt.source) {
				t.Errorf("%s: the source is %s", tt.reason, source)
			}
			if len(p.Compiled()) != 1 {
				t.Error("it is not compiled")
			}
		})
	}
}

func TestTheShippedPolicyItselfReplacesNothing(t *testing.T) {
	_, text, _ := policies.Lookup("ci")
	c, found := admitFolder(t, map[string]string{"a.yaml": shippedAgent, "ci.yaml": string(text)})
	if len(found) > 0 || c.Shipped("ci") {
		t.Errorf("found %v", found)
	}
}

// A tool that takes a shipped one's call name must not keep rules from the shipped
// one that another agent lists.
func TestRulesAreCompiledForTheToolThatAnAgentHas(t *testing.T) {
	const text = `apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {modelRef: {name: m}, tools: [{name: bash}], policyRefs: [{name: p}]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: b}
spec: {modelRef: {name: m}, tools: [{name: shell}], policyRefs: [{name: p}]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: shell}
spec: {callName: bash, risk: R3, source: {builtin: {name: bash}}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec: {provider: scripted, scripted: {steps: [{say: hi}]}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: p}
spec: {rules: [{name: two, match: {risks: [R2]}, action: deny}, {name: three, match: {risks: [R3]}, action: deny}]}
`
	c, found := admitFolder(t, map[string]string{"a.yaml": text})
	if found.HasErrors() {
		t.Fatal(found)
	}
	for agent, rule := range map[string]string{"a": "p/two", "b": "p/three"} {
		p, err := c.Resolve(ResolveOptions{Agent: agent})
		if err != nil {
			t.Fatal(err)
		}
		e := policy.NewEngine(p.Compiled(), policy.Context{Tools: []policy.Tool{policyTool(p.Tools[0].Tool)}})
		d, err := e.Decide(t.Context(), message.ToolCall{Tool: "bash", Args: []byte(`{"command":"ls"}`)})
		if err != nil || d.Action != message.Deny || d.Rule != rule {
			t.Errorf("agent %s: got %+v, %v, want a deny by %s", agent, d, err, rule)
		}
	}
}

func TestAPolicyThatNobodyNamesIsNotLoaded(t *testing.T) {
	c, found := admitFolder(t, map[string]string{"a.yaml": strings.Replace(shippedAgent, "policyRefs: [{name: ci}]", "policyRefs: []", 1)})
	if len(found) > 0 || len(c.Policies) != 0 {
		t.Errorf("found %v, policies %v", found, names(c.Policies))
	}
}

func TestCasesBesideAPolicyAreHeldAgainstIt(t *testing.T) {
	const policy = "apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec: {default: deny, rules: [{name: look, match: {tools: [read]}, action: allow}]}\n"
	for name, tt := range map[string]struct{ reason, cases, complaint string }{
		"good":          {"a rule, the list, the default", "policy: p\ntests:\n- {name: a, call: {tool: read}, expect: allow, rule: look}\n- {name: b, call: {tool: bash}, expect: deny, rule: default}\n- {name: c, call: {tool: bash}, expect: deny, rule: permissions}\n", ""},
		"shipped":       {"of a shipped policy", "policy: ci\ntests:\n- {name: a, call: {tool: read}, expect: allow, rule: looking}\n", ""},
		"other policy":  {"a policy that is not there", "policy: q\ntests:\n- {name: a, call: {tool: read}, expect: allow}\n", `Policy "q" not found`},
		"other rule":    {"a rule that is not there", "policy: p\ntests:\n- {name: a, call: {tool: read}, expect: allow, rule: lok}\n", `no rule "lok"`},
		"twice":         {"one name for two cases", "policy: p\ntests:\n- {name: a, call: {tool: read}, expect: allow}\n- {name: a, call: {tool: read}, expect: allow}\n", "declared twice"},
		"link":          {"a link outside of the workspace", "policy: p\ntests:\n- {name: a, links: [{path: /x, to: y}], call: {tool: read}, expect: allow}\n", "not inside the workspace"},
		"missing calls": {"a case without a call", "policy: p\ntests:\n- {name: a, expect: allow}\n", "call"},
	} {
		t.Run(name, func(t *testing.T) {
			c, found := admitFolder(t, map[string]string{"p.yaml": policy, "p-tests.yaml": tt.cases})
			var all []string
			for _, f := range found {
				all = append(all, f.Message)
			}
			if text := strings.Join(all, "\n"); found.HasErrors() != (tt.complaint != "") || !strings.Contains(text, tt.complaint) {
				t.Errorf("%s: found %q, want %q", tt.reason, text, tt.complaint)
			}
			if tt.complaint == "" && len(c.Cases) != 1 {
				t.Errorf("%s: cases of %d policies, want 1", tt.reason, len(c.Cases))
			}
		})
	}
}
