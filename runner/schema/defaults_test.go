package schema

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultsAreThoseOfProperties(t *testing.T) {
	s := compile(t, `{"type": "object", "default": {"x": 1}, "properties": {
		"a": {"type": "integer", "default": 3}, "b": {"default": null}, "c": {"type": "string"}, "d": {"default": {"e": [false]}}, "f": true}}`)
	want := map[string]json.RawMessage{"a": json.RawMessage("3"), "b": json.RawMessage("null"), "d": json.RawMessage(`{"e":[false]}`)}
	if diff := cmp.Diff(want, s.Defaults()); diff != "" {
		t.Error(diff)
	}
	for _, none := range []string{"true", "{}", `{"type": "object", "properties": {"a": {}}}`} {
		if got := compile(t, none).Defaults(); got != nil {
			t.Errorf("%s: got %v", none, got)
		}
	}
}
