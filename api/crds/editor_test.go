package crds

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

const goodAgent = `
apiVersion: agentctl.dev/v1alpha1
kind: Agent
metadata: {name: reviewer, labels: {team: web}}
spec:
  modelRef: {name: fast}
  tools: [{name: read}, {name: bash}]
  limits: {maxSteps: 5, timeout: 1m30s, maxCost: "2.00"}
  output: {schema: {type: object, properties: {verdict: {type: string}}}}
`

const goodTool = `
apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: count}
spec:
  effects: [Read, Write]
  limits: {memory: 512Mi, cpu: 1}
  flow: {arguments: {to: Destination}}
  parameters: {type: object, additionalProperties: false}
  source: {exec: {command: [./count.sh]}}
status: {observedGeneration: 3}
`

// goodTest has expectations of both forms: a text, and a mapping.
const goodTest = `
apiVersion: agentctl.dev/v1alpha1
kind: Test
metadata: {name: works}
spec:
  agentRef: {name: reviewer}
  expect: [size(calls) == 1, {name: ends, expression: result.exitCode == 0}]
`

func TestEditorSchemaMarksMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		kind   string
		yaml   string
		want   string // part of the complaint; empty: none
	}{
		"agent":     {"a whole Agent is fine", "Agent", goodAgent, ""},
		"tool":      {"quantities may be numbers, free JSON is free, a status is let through", "Tool", goodTool, ""},
		"spelling":  {"a misspelled field is marked where the CRD would drop it", "Agent", strings.Replace(goodAgent, "limits:", "limts:", 1), "limts"},
		"deep":      {"inside a list too", "Agent", strings.Replace(goodAgent, "{name: read}", "{nam: read}", 1), "nam"},
		"enum":      {"a value outside the list", "Tool", strings.Replace(goodTool, "Write", "Scribble", 1), "effects"},
		"set":       {"a set holds a value once", "Tool", strings.Replace(goodTool, "Write", "Read", 1), "effects"},
		"money":     {"an unquoted amount is a number", "Agent", strings.Replace(goodAgent, `"2.00"`, `2.00`, 1), "maxCost"},
		"duration":  {"a duration without a unit", "Agent", strings.Replace(goodAgent, "1m30s", `"90"`, 1), "timeout"},
		"kind":      {"another kind's manifest", "Agent", goodTool, "kind"},
		"spec":      {"a manifest without a spec", "Agent", "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}", "spec"},
		"nameless":  {"a manifest without a name", "Agent", strings.Replace(goodAgent, "name: reviewer,", "", 1), "metadata"},
		"mapvalue":  {"a value of a map outside the list", "Tool", strings.Replace(goodTool, "Destination", "Somewhere", 1), "arguments"},
		"noversion": {"a manifest without apiVersion", "Agent", strings.Replace(goodAgent, "apiVersion:", "version:", 1), "apiVersion"},
		"test":      {"a text and a mapping are two forms of one value", "Test", goodTest, ""},
		"neither":   {"a number is neither of the two", "Test", strings.Replace(goodTest, "size(calls) == 1", "1", 1), "expect"},
		"form":      {"and the mapping has no other fields", "Test", strings.Replace(goodTest, "name: ends", "nmae: ends", 1), "expect"},
		"sources":   {"two sources in one Tool", "Tool", strings.Replace(goodTool, "source: {", "source: {builtin: {name: bash}, ", 1), "source"},
	} {
		t.Run(name, func(t *testing.T) {
			one, err := EditorSchema(c.kind)
			if err != nil {
				t.Fatal(err)
			}
			judge(t, c.reason, compile(t, one), c.yaml, c.want)
		})
	}
}

func TestEditorSchemaAllIsDispatchedByKind(t *testing.T) {
	all, err := EditorSchemaAll()
	if err != nil {
		t.Fatal(err)
	}
	schema := compile(t, all)
	judge(t, "an Agent is accepted", schema, goodAgent, "")
	judge(t, "a Tool is accepted", schema, goodTool, "")
	judge(t, "a Tool's spec under the name Agent is not", schema, strings.Replace(goodTool, "kind: Tool", "kind: Agent", 1), "oneOf")
	judge(t, "an unknown kind is not", schema, strings.Replace(goodTool, "kind: Tool", "kind: Pod", 1), "oneOf")
}

func TestEditorSchemaOfEveryKindIsDraft07(t *testing.T) {
	for _, kind := range Kinds() {
		text, err := EditorSchema(kind)
		if err != nil {
			t.Fatal(err)
		}
		compile(t, text)
		for _, unwanted := range []string{"x-kubernetes", `"int64"`, `"nullable"`} {
			if bytes.Contains(text, []byte(unwanted)) {
				t.Errorf("%s: %s is not JSON Schema", kind, unwanted)
			}
		}
		var doc struct {
			Schema string `json:"$schema"`
			Title  string `json:"title"`
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Schema != draft07 || doc.Title != kind {
			t.Errorf("%s: $schema %q, title %q", kind, doc.Schema, doc.Title)
		}
	}
	if _, err := EditorSchema("Agnet"); err == nil || !strings.Contains(err.Error(), `did you mean "Agent"?`) {
		t.Errorf("EditorSchema of a misspelled kind = %v", err)
	}
}

func TestEditorSchemaDoesNotChangeTheKind(t *testing.T) {
	k, _ := Kind("Tool")
	before, err := json.Marshal(k.Schema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := EditorSchemaAll(); err != nil {
		t.Fatal(err)
	}
	after, err := json.Marshal(k.Schema)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("the shared schema was changed:\n%s", diff)
	}
}

func TestNullableBecomesATypeOfTwo(t *testing.T) {
	got := editorSchema(map[string]any{"type": "string", "nullable": true, "format": "date-time"})
	want := map[string]any{"type": []any{"string", "null"}, "format": "date-time"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func compile(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func judge(t *testing.T, reason string, schema *jsonschema.Schema, manifest, want string) {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	err = schema.Validate(doc)
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", reason, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: complaint %v does not name %q", reason, err, want)
	}
}
