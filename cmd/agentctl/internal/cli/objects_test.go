package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/runner/client"
)

func object(generation, observed int64, status string) client.Object {
	return client.Object{
		"metadata": map[string]any{"name": "a", "generation": generation},
		"status": map[string]any{"phase": "Running", "conditions": []any{
			map[string]any{"type": "Ready", "status": status, "observedGeneration": observed},
		}},
	}
}

func TestGoalsOfWait(t *testing.T) {
	for name, x := range map[string]struct {
		reason, goal string
		object       client.Object
		want         bool
	}{
		"ready":             {"the condition is True", "condition=Ready", object(2, 2, "True"), true},
		"lower case":        {"kubectl takes it, too", "condition=ready", object(2, 2, "True"), true},
		"of another state":  {"the object has changed since", "condition=Ready", object(3, 2, "True"), false},
		"not said of which": {"a condition without a generation counts", "condition=Ready", object(3, 0, "True"), true},
		"false":             {"False is not True", "condition=Ready", object(2, 2, "False"), false},
		"wants false":       {"a status may be named", "condition=Ready=False", object(2, 2, "False"), true},
		"other condition":   {"it is not there", "condition=Succeeded", object(2, 2, "True"), false},
		"nothing there":     {"no object has no condition", "condition=Ready", nil, false},
		"path":              {"the value is the same", "jsonpath={.status.phase}=Running", object(1, 1, "True"), true},
		"bare path":         {"braces may be left out", "jsonpath=.status.phase=Running", object(1, 1, "True"), true},
		"other value":       {"the value is another", "jsonpath={.status.phase}=Done", object(1, 1, "True"), false},
		"any value":         {"there is one", "jsonpath={.status.phase}", object(1, 1, "True"), true},
		"no value":          {"there is none", "jsonpath={.status.none}", object(1, 1, "True"), false},
		"no value, wanted":  {"nothing is not the value", "jsonpath={.status.none}=x", object(1, 1, "True"), false},
		"filter":            {"a filter holds =", `jsonpath={.status.conditions[?(@.type=="Ready")].status}=True`, object(1, 1, "True"), true},
		"path of nothing":   {"no object has no field", "jsonpath={.a}", nil, false},
		"deleted":           {"no object is what is wanted", "delete", nil, true},
		"not deleted":       {"it is there", "delete", object(1, 1, "True"), false},
		"created":           {"it is there", "create", object(1, 1, "True"), true},
	} {
		t.Run(name, func(t *testing.T) {
			goal, err := parseGoal(x.goal)
			if err != nil {
				t.Fatal(err)
			}
			if got := goal(x.object); got != x.want {
				t.Errorf("%s: got %v", x.reason, got)
			}
		})
	}
	for _, text := range []string{"", "=", "condition", "condition=", "jsonpath=", "jsonpath={.a", "deleted", "Ready"} {
		if _, err := parseGoal(text); err == nil {
			t.Errorf("%q is no goal", text)
		}
	}
}

func TestWordsNameObjects(t *testing.T) {
	ref := func(kind, name string) client.Ref { return client.Ref{Kind: kind, Namespace: "n", Name: name} }
	for words, want := range map[string]wanted{
		"agents":                       {kinds: []string{"Agent"}},
		"ag,Model,agents":              {kinds: []string{"Agent", "Model"}},
		"agent a":                      {kinds: []string{"Agent"}, refs: []client.Ref{ref("Agent", "a")}, single: true},
		"agent/a":                      {kinds: []string{"Agent"}, refs: []client.Ref{ref("Agent", "a")}, single: true},
		"agent/a models/b":             {kinds: []string{"Agent", "Model"}, refs: []client.Ref{ref("Agent", "a"), ref("Model", "b")}},
		"agent,model a":                {kinds: []string{"Agent", "Model"}, refs: []client.Ref{ref("Agent", "a"), ref("Model", "a")}},
		"agents.agentctl.dev a b":      {kinds: []string{"Agent"}, refs: []client.Ref{ref("Agent", "a"), ref("Agent", "b")}},
		"agents.v1alpha1.agentctl.dev": {kinds: []string{"Agent"}},
	} {
		got, err := parseWanted(strings.Fields(words), "n")
		if err != nil {
			t.Errorf("%s: %v", words, err)
			continue
		}
		if d := cmp.Diff(&want, got, cmp.AllowUnexported(wanted{})); d != "" {
			t.Errorf("%s (-want +got)\n%s", words, d)
		}
	}
	for _, words := range []string{"", "agent/", "/a", "agent/a b", "agent a/b", "gadgets", "agents,", "agents.apps a", "agents.example.com"} {
		if got, err := parseWanted(strings.Fields(words), "n"); err == nil {
			t.Errorf("%q means %v", words, got)
		}
	}
}

func TestPairsOfLabel(t *testing.T) {
	o := labelOptions{field: "labels"}
	objects, changes, err := o.pairs([]string{"agent", "my-agent", "a=b", "c-", "d.example/e="})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"agent", "my-agent"}, objects) + cmp.Diff(map[string]any{"a": "b", "c": nil, "d.example/e": ""}, changes); d != "" {
		t.Error(d)
	}
	for _, words := range [][]string{{"agent", "a"}, {"agent", "a", "b=c", "d"}, {"agent", "a", "=b"}, {"agent", "a", "-"}, {"agent", "a", "b=" + strings.Repeat("x", 64)}, {"agent", "a", "b=c", "b-"}} {
		if _, _, err := o.pairs(words); err == nil {
			t.Errorf("%q are no changes", words)
		}
	}
}

func TestSortingPutsNothingFirstAndNumbersByValue(t *testing.T) {
	got := reorder([]string{"ten", "two", "none"}, []any{int64(10), 2.5, nil})
	if d := cmp.Diff([]string{"none", "two", "ten"}, got); d != "" {
		t.Error(d)
	}
	if got := reorder([]string{"b", "a"}, []any{"b", "a"}); got[0] != "a" {
		t.Errorf("texts are in their order: %v", got)
	}
	if got := reorder([]string{"b", "a"}, []any{int64(10), int64(9)}); got[0] != "a" {
		t.Errorf("9 comes before 10: %v", got)
	}
}
