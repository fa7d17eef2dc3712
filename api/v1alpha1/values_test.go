package v1alpha1

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestMoneyIsExact(t *testing.T) {
	for in, want := range map[Money]int64{"": 0, "0": 0, "2.00": 2_000_000, "0.000001": 1, "0.25": 250_000, "999999999.999999": 999_999_999_999_999} {
		if got, err := in.Micros(); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []Money{"-1", "1.0000001", "1,5", ".5", "1e3", "x", "1.-5", "+1", "9999999999"} {
		if got, err := in.Micros(); err == nil {
			t.Errorf("%q was read as %d", in, got)
		}
	}
}

func TestJSONKeepsWhatWasWritten(t *testing.T) {
	var v struct {
		A JSON  `json:"a"`
		B *JSON `json:"b,omitempty"`
	}
	in := `{"a":{"big":12345678901234567890,"f":1.0}}`
	if err := json.Unmarshal([]byte(in), &v); err != nil {
		t.Fatal(err)
	}
	if out, err := json.Marshal(v); err != nil || string(out) != in {
		t.Errorf("got %s, %v; want %s", out, err, in)
	}
	if out, err := json.Marshal(JSON{}); err != nil || string(out) != "null" {
		t.Errorf("an absent value is %s, %v", out, err)
	}
	if err := v.A.UnmarshalJSON([]byte("null")); err != nil || v.A.Raw != nil {
		t.Errorf("null is %s, %v", v.A.Raw, err)
	}
}

func TestSchemeKnowsEveryKind(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range Kinds() {
		if !s.Recognizes(GroupVersion.WithKind(kind)) || !s.Recognizes(GroupVersion.WithKind(kind+"List")) {
			t.Errorf("the scheme does not know %s and its list", kind)
		}
	}
}
