package agentctl_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/policy"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// TestPoliciesDecideTheirOwnCases judges the calls in spec.tests of every
// policy of the tree by that policy alone.
func TestPoliciesDecideTheirOwnCases(t *testing.T) {
	var folders []string
	for _, pattern := range []string{"policies/*", "manifests/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				folders = append(folders, path)
			}
		}
	}
	cases := 0
	for _, folder := range folders {
		set, found := manifest.Load(t.Context(), []string{folder}, nil)
		if found.HasErrors() {
			t.Errorf("%s: %v", folder, found)
		}
		for _, d := range set.Documents {
			p, ok := d.Object.(*v1alpha1.Policy)
			if !ok {
				continue
			}
			compiled, problems := policy.Compile(p, shippedTools())
			for _, problem := range problems {
				t.Errorf("%s: %v", d, problem)
			}
			for _, c := range p.Spec.Tests {
				cases++
				t.Run(p.Name+"/"+c.Name, func(t *testing.T) { decide(t, compiled, c) })
			}
		}
	}
	if cases == 0 {
		t.Error("no policy of the tree has a case")
	}
}

func shippedTools() (tools []policy.Tool) {
	for _, name := range builtin.Names() {
		b, _ := builtin.Lookup(name)
		tools = append(tools, policy.Tool{
			Name: b.Name, Builtin: b.Name, Source: "builtin", Risk: b.Risk, Effects: b.Effects, Category: b.Category, Schema: b.Parameters,
		})
	}
	return tools
}

func decide(t *testing.T, compiled *policy.Compiled, c v1alpha1.PolicyTest) {
	t.Helper()
	engine := policy.NewEngine([]*policy.Compiled{compiled}, policy.Context{
		Agent: policy.Agent{Name: c.Agent}, Workspace: policy.Workspace{Root: t.TempDir()}, Tools: shippedTools(),
	})
	args := json.RawMessage("{}")
	if c.Call.Args != nil {
		args = c.Call.Args.Raw
	}
	d, err := engine.Decide(t.Context(), message.ToolCall{ID: "call", Tool: c.Call.Tool, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	if string(d.Action) != string(c.Expect) {
		t.Errorf("decided %s by %s (%s), want %s", d.Action, d.Rule, d.Message, c.Expect)
	}
	if c.Rule != "" && !strings.HasSuffix(d.Rule, "/"+c.Rule) {
		t.Errorf("decided by %s, want %s", d.Rule, c.Rule)
	}
	if c.Message != "" && d.Message != c.Message {
		t.Errorf("says %q, want %q", d.Message, c.Message)
	}
}
