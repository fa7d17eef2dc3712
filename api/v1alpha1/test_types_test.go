package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnExpectationIsATextOrAMapping(t *testing.T) {
	var got []Expectation
	if err := json.Unmarshal([]byte(`["a == 1", {"name": "n", "expression": "b", "message": "m"}, {}]`), &got); err != nil {
		t.Fatal(err)
	}
	want := []Expectation{{Expression: "a == 1"}, {Name: "n", Expression: "b", Message: "m"}, {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{`1`, `true`, `["x"]`, `{"expression": 1}`, `"`} {
		if err := json.Unmarshal([]byte(text), new(Expectation)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}
