package crds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestApplyDefaultsDoesWhatAnAPIServerDoes(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		schema string
		obj    string
		want   string
	}{
		"absent": {"an absent field gets its default", `{"properties":{"a":{"default":1}}}`, `{}`, `{"a":1}`},
		"given":  {"a given value stays, a zero one too", `{"properties":{"a":{"default":1}}}`, `{"a":0}`, `{"a":0}`},
		"nested": {
			"a default of {} opens an object whose fields then get theirs",
			`{"properties":{"a":{"default":{},"properties":{"b":{"default":"x"}}}}}`, `{}`, `{"a":{"b":"x"}}`,
		},
		"closed": {
			"fields of an object that stays absent do not make it appear",
			`{"properties":{"a":{"properties":{"b":{"default":"x"}}}}}`, `{}`, `{}`,
		},
		"partial": {
			"an object that is given in part is completed",
			`{"properties":{"a":{"properties":{"b":{"default":"x"},"c":{"default":2}}}}}`, `{"a":{"c":3}}`, `{"a":{"b":"x","c":3}}`,
		},
		"list": {
			"each entry of a list is completed",
			`{"properties":{"l":{"items":{"properties":{"p":{"default":"*"}}}}}}`, `{"l":[{},{"p":"git"}]}`, `{"l":[{"p":"*"},{"p":"git"}]}`,
		},
		"map": {
			"each value of a map is completed",
			`{"properties":{"m":{"additionalProperties":{"properties":{"p":{"default":1}}}}}}`, `{"m":{"x":{}}}`, `{"m":{"x":{"p":1}}}`,
		},
		"null with default": {"null is no value, so the default stands", `{"properties":{"a":{"default":1}}}`, `{"a":null}`, `{"a":1}`},
		"null without":      {"null is no value and is pruned", `{"properties":{"a":{"type":"string"}}}`, `{"a":null}`, `{}`},
		"nullable":          {"where null is a value it stays", `{"properties":{"a":{"default":1,"nullable":true}}}`, `{"a":null}`, `{"a":null}`},
		"null in a map":     {"a null value of a map is pruned", `{"properties":{"m":{"additionalProperties":{"type":"string"}}}}`, `{"m":{"x":null}}`, `{"m":{}}`},
		"null default map":  {"a null value of a map takes the default", `{"additionalProperties":{"default":"d"}}`, `{"x":null}`, `{"x":"d"}`},
		"null entry":        {"a null entry of a list takes the default", `{"properties":{"l":{"items":{"default":7}}}}`, `{"l":[null,1]}`, `{"l":[7,1]}`},
		"null entry stays":  {"without a default it stays, for validation to refuse", `{"properties":{"l":{"items":{"type":"string"}}}}`, `{"l":[null]}`, `{"l":[null]}`},
		"free":              {"nothing is known about free JSON, nulls stay", `{"properties":{"f":{"x-kubernetes-preserve-unknown-fields":true}}}`, `{"f":{"a":null,"l":[{}]}}`, `{"f":{"a":null,"l":[{}]}}`},
		"wrong type":        {"a value of the wrong type is left for validation", `{"properties":{"a":{"default":{},"properties":{"b":{"default":1}}}}}`, `{"a":"text"}`, `{"a":"text"}`},
		"unknown":           {"an unknown field is left for validation", `{"properties":{"a":{"default":1}}}`, `{"z":null}`, `{"z":null,"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			schema, obj, want := parse(t, c.schema), parse(t, c.obj), parse(t, c.want)
			applyDefaults(obj, schema)
			if diff := cmp.Diff(want, obj); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestApplyDefaultsCompletesAnAgent(t *testing.T) {
	obj := parse(t, `{"kind":"Agent","metadata":{"name":"a"},"spec":{"modelRef":{"name":"m"},"limits":{"maxSteps":7},"output":{"schema":{"type":"object"}}}}`)
	ApplyDefaults("Agent", obj)
	want := parse(t, `{"kind":"Agent","metadata":{"name":"a"},"spec":{
		"modelRef":{"name":"m"}, "mode":"All",
		"limits":{"maxSteps":7,"timeout":"15m","maxParallelTools":8,"maxDepth":2},
		"loopGuard":{"identicalCalls":3,"cycles":3,"stalledSteps":8,"invalidAnswers":5,"repeatedTextBytes":65536,"onDetect":"Stop"},
		"context":{"compactAtPercent":80,"keepRecentTokens":15000,"pruneToolOutput":true},
		"approvals":{"onAsk":"Deny","timeout":"10m"},
		"output":{"schema":{"type":"object"},"retries":2}}}`)
	if diff := cmp.Diff(want, obj); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDefaultsAreNotSharedBetweenObjects(t *testing.T) {
	schema := parse(t, `{"properties":{"a":{"default":{"l":[1]}}}}`)
	first, second := map[string]any{}, map[string]any{}
	applyDefaults(first, schema)
	object(first["a"])["l"].([]any)[0] = int64(99)
	object(first["a"])["x"] = "added"
	applyDefaults(second, schema)
	if diff := cmp.Diff(parse(t, `{"a":{"l":[1]}}`), second); diff != "" {
		t.Errorf("a change of one object reached the schema (-want +got):\n%s", diff)
	}
}

func TestApplyDefaultsLeavesAnUnknownKindAlone(t *testing.T) {
	obj := map[string]any{"spec": map[string]any{}}
	ApplyDefaults("Pod", obj)
	if diff := cmp.Diff(map[string]any{"spec": map[string]any{}}, obj); diff != "" {
		t.Error(diff)
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	obj, err := decodeObject(text)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func BenchmarkApplyDefaults(b *testing.B) {
	Kind("Agent")
	b.ReportAllocs()
	for b.Loop() {
		ApplyDefaults("Agent", map[string]any{"spec": map[string]any{"modelRef": map[string]any{"name": "m"}}})
	}
}
