package crds

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestExplainMatchesGolden(t *testing.T) {
	for name, c := range map[string]struct {
		path      string
		recursive bool
	}{
		"agent":             {path: "agent"},
		"agent-limits":      {path: "agent.spec.limits"},
		"agent-tools-name":  {path: "AGENTS.Spec.tools.NAME."},
		"tool-recursive":    {path: "tool", recursive: true},
		"tool-flow":         {path: "tool.spec.flow"},
		"policy-rules":      {path: "policies.spec.rules"},
		"run-metadata":      {path: " run.metadata "},
		"model-retry-delay": {path: "model.spec.retry.maxDelay"},
		"limits-recursive":  {path: "ag.spec.limits", recursive: true},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Explain(c.path, c.recursive)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", e.Text())
		})
	}
}

func TestEditorSchemaMatchesGolden(t *testing.T) {
	text, err := EditorSchema("Run")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "run.schema.json", string(text))
}

func TestExplainSuggestsForWrongNames(t *testing.T) {
	for path, want := range map[string]string{
		"agnet":                       `there is no kind "agnet"; did you mean "Agent"?`,
		"":                            `there is no kind ""; there are: Agent, Model, Tool, Policy, Skill, Workspace, Run, Approval`,
		"pod":                         `there is no kind "pod"; there are: Agent, Model, Tool, Policy, Skill, Workspace, Run, Approval`,
		"agent.spec.limts":            `agent.spec has no field "limts"; did you mean "limits"?`,
		"agent.spec.tools.nmae":       `agent.spec.tools has no field "nmae"; did you mean "name"?`,
		"agent.spec.mode.x":           `agent.spec.mode has no field "x"; it has no fields`,
		"agent..spec":                 `agent has no field ""; there are: apiVersion, kind, metadata, spec, status`,
		"tool.spec.parameters.x":      `tool.spec.parameters has no field "x"; it has no fields`,
		"tool.spec.flow.arguments.to": `tool.spec.flow.arguments has no field "to"; it has no fields`,
		strings.Repeat("x", 1<<20):    "there is no kind",
	} {
		_, err := Explain(path, false)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Explain(%.40q) = %.200v, want %s", path, err, want)
		}
	}
}

func TestEveryFieldOfEverySpecIsDescribed(t *testing.T) {
	var walk func(path string, fields []Field)
	walk = func(path string, fields []Field) {
		for _, f := range fields {
			if f.Description == "" {
				t.Errorf("%s.%s has no description: add a comment in api/v1alpha1", path, f.Name)
			}
			walk(path+"."+f.Name, f.Fields)
		}
	}
	for _, kind := range Kinds() {
		e, err := Explain(kind, true)
		if err != nil {
			t.Fatal(err)
		}
		walk(kind, e.Field.Fields)
	}
}

func TestATextOrAMappingIsExplainedAsBoth(t *testing.T) {
	e, err := Explain("test.spec.expect", false)
	if err != nil || e.Field.Type != "[]string|Object" || len(e.Field.Fields) != 3 {
		t.Errorf("%+v, %v: want a list of texts or mappings, and the fields of these", e, err)
	}
	if e, err = Explain("test.spec.cases.expect.message", false); err != nil || e.Field.Type != "string" {
		t.Errorf("%+v, %v: want a field of the mapping", e, err)
	}
}

func TestBoundsAreWords(t *testing.T) {
	for text, want := range map[string]string{
		`{"minimum":1,"maximum":8}`:             "1 to 8",
		`{"minimum":2}`:                         "at least 2",
		`{"minimum":1}`:                         "at least 1",
		`{"maxItems":4}`:                        "at most 4 entries",
		`{"minItems":1}`:                        "not empty",
		`{"minProperties":1,"maxProperties":1}`: "exactly 1 field",
		`{"minLength":2,"maxLength":3}`:         "2 to 3 characters",
		`{"type":"string"}`:                     "",
	} {
		if got := bounds(parse(t, text)); got != want {
			t.Errorf("bounds(%s) = %q, want %q", text, got, want)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it anew):\n%s", path, diff)
	}
}
