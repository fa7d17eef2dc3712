package admission

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/model/provider"
	"agentctl.dev/agentctl/runner/tool/source/sources"
)

const relativePaths = `
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: t}
spec:
  parameters: {type: object}
  source: {exec: {command: ["./a/../run.sh", "./untouched"]}}
  env: [{name: A, valueFrom: {file: secrets/a}}, {name: B, valueFrom: {exec: ["bin/b", "x"]}}, {name: C, value: ./c}]
  isolation: {mounts: [{path: data}, {path: /data}]}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: found}
spec: {source: {mcp: {stdio: {command: [npx, ./x]}}}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: image}
spec: {source: {container: {image: "oci:images/x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: web}
spec: {source: {mcp: {http: {url: "https://h/", headers: [{name: A, valueFrom: {file: token}}]}}}}
---
apiVersion: agentctl.dev/v1alpha1
kind: Model
metadata: {name: m}
spec: {provider: openai, model: x, apiKey: {valueFrom: {file: ../key}}}
`

// TestAbsolutePathsAreThoseOfAPlan holds what is sent to a control plane against
// what a run on this machine makes of the same manifest.
func TestAbsolutePathsAreThoseOfAPlan(t *testing.T) {
	set, found := manifest.Parse(t.Context(), "m.yaml", []byte(relativePaths))
	if found.HasErrors() {
		t.Fatal(found)
	}
	for _, d := range set.Documents {
		d.Dir = "/home/x/m"
		t.Run(d.String(), func(t *testing.T) {
			obj := d.Written()
			before, _ := json.Marshal(obj)
			Absolute(d.Kind, obj, d.Dir)
			var got, want any
			switch typed := d.Object.(type) {
			case *v1alpha1.Tool:
				absoluteTool(typed, d.Dir)
				want, got = typed.Spec, &v1alpha1.Tool{}
			case *v1alpha1.Model:
				absoluteModel(typed, d.Dir)
				want, got = typed.Spec, &v1alpha1.Model{}
			}
			after, _ := json.Marshal(obj)
			crds.ApplyDefaults(d.Kind, obj) // the typed object has its own
			raw, err := json.Marshal(obj)
			if err != nil || json.Unmarshal(raw, got) != nil {
				t.Fatalf("%v: %s", err, raw)
			}
			if d := cmp.Diff(paths(want), paths(spec(got))); d != "" {
				t.Errorf("(-plan +sent)\n%s", d)
			}
			if changed := string(before) != string(after); changed != (d.Name != "found") {
				t.Errorf("changed: %v\n%s", changed, after)
			}
		})
	}
}

func spec(v any) any {
	switch v := v.(type) {
	case *v1alpha1.Tool:
		return v.Spec
	case *v1alpha1.Model:
		return v.Spec
	}
	return nil
}

// paths are the parts of a spec that hold some.
func paths(v any) []any {
	switch s := v.(type) {
	case v1alpha1.ToolSpec:
		return []any{s.Source, s.Env, s.Isolation.Mounts}
	case v1alpha1.ModelSpec:
		return []any{s.APIKey, s.Cassette}
	}
	return nil
}

func TestRunsWorkspaceBecomesAbsolute(t *testing.T) {
	obj := map[string]any{"spec": map[string]any{"workspace": map[string]any{"source": map[string]any{"path": "."}}}}
	Absolute(v1alpha1.KindRun, obj, "/work")
	want := map[string]any{"spec": map[string]any{"workspace": map[string]any{"source": map[string]any{"path": "/work"}}}}
	if d := cmp.Diff(want, obj); d != "" {
		t.Error(d)
	}
}

func TestFoldersOfSkillsAndWorkspacesBecomeAbsolute(t *testing.T) {
	for kind, spec := range map[string]func(path string) map[string]any{
		v1alpha1.KindSkill:     func(path string) map[string]any { return map[string]any{"dir": path} },
		v1alpha1.KindWorkspace: func(path string) map[string]any { return map[string]any{"source": map[string]any{"path": path}} },
		v1alpha1.KindTest: func(path string) map[string]any {
			files := func() map[string]any { return map[string]any{"source": map[string]any{"path": path}} }
			return map[string]any{"record": path, "workspace": files(), "cases": []any{map[string]any{"record": path, "workspace": files()}}}
		},
	} {
		got, want := map[string]any{"spec": spec("../x")}, map[string]any{"spec": spec("/x")}
		Absolute(kind, got, "/work")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s\n%s", kind, d)
		}
	}
}

func TestOddShapesAreLeftAlone(t *testing.T) {
	for _, obj := range []map[string]any{nil, {}, {"spec": 7}, {"spec": map[string]any{"source": []any{}, "env": []any{7, map[string]any{"valueFrom": "x"}}, "isolation": nil}}} {
		for _, kind := range []string{v1alpha1.KindTool, v1alpha1.KindModel, v1alpha1.KindSkill, v1alpha1.KindWorkspace, v1alpha1.KindRun, v1alpha1.KindTest, "Other"} {
			before, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			Absolute(kind, obj, "/x")
			if after, err := json.Marshal(obj); err != nil || string(after) != string(before) {
				t.Errorf("%s %s became %s (%v)", kind, before, after, err)
			}
		}
	}
}

func TestElsewhereLeavesOnlyReferencesOpen(t *testing.T) {
	for name, x := range map[string]struct {
		reason, text string
		closed, open bool // errors
	}{
		"model":   {"a model may come later", "kind: Agent\nspec: {modelRef: {name: later}, tools: [{name: later}], policyRefs: [{name: later}]}", true, false},
		"run":     {"an agent may come later", "kind: Run\nspec: {agentRef: {name: later}, prompt: x}", true, false},
		"builtin": {"there are no other built-in tools anywhere", "kind: Tool\nspec: {source: {builtin: {name: nosuch}}}", true, true},
		"mistake": {"a mistake stays one", "kind: Agent\nspec: {modelRef: {name: later}, mode: Sometimes}", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, elsewhere := range []bool{false, true} {
				set, found := manifest.Parse(context.Background(), "m.yaml", []byte("apiVersion: agentctl.dev/v1alpha1\nmetadata: {name: x}\n"+x.text))
				_, more := Admit(set, Options{Models: provider.All(), Tools: sources.All(), Elsewhere: elsewhere})
				want := map[bool]bool{false: x.closed, true: x.open}[elsewhere]
				if got := append(found, more...); got.HasErrors() != want {
					t.Errorf("%s: elsewhere %v: %v", x.reason, elsewhere, got)
				}
			}
		})
	}
}
