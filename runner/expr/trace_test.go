package expr

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTraceTellsWhatPartsWere(t *testing.T) {
	env, err := NewEnv(Var{Name: "n", Type: Int}, Var{Name: "names", Type: List(String)}, Var{Name: "m", Type: Map(String)})
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"n": 3, "names": []string{"a", "<b>"}, "m": map[string]string{"x": "y"}}
	tests := map[string]struct {
		reason, src string
		unknown     *Unknowns
		want        []Step
	}{
		"parts":     {"the whole comes first", "n > 2 && 'a' in names", nil, []Step{{`n > 2 && "a" in names`, "true"}, {"n > 2", "true"}, {"n", "3"}, {`"a" in names`, "true"}, {"names", `["a","<b>"]`}}},
		"cut short": {"what was not evaluated has no value", "n < 2 && 'a' in names", nil, []Step{{`n < 2 && "a" in names`, "false"}, {"n < 2", "false"}, {"n", "3"}}},
		"loop":      {"a loop is one part", "names.exists(x, x == 'a')", nil, []Step{{`names.exists(x, x == "a")`, "true"}, {"names", `["a","<b>"]`}}},
		"row":       {"of a row the whole and each part", "n > 5 || n > 4 || 'c' in names || n > 2", nil, []Step{{`n > 5 || n > 4 || "c" in names || n > 2`, "true"}, {"n > 5", "false"}, {"n", "3"}, {"n > 4", "false"}, {`"c" in names`, "false"}, {"names", `["a","<b>"]`}, {"n > 2", "true"}}},
		"constant":  {"what reads nothing says what it is itself", "['a', 'b'] == names || 1 + 1 == 3 || n == 3", nil, []Step{{`["a", "b"] == names || 1 + 1 == 3 || n == 3`, "true"}, {`["a", "b"] == names`, "false"}, {"names", `["a","<b>"]`}, {"n == 3", "true"}, {"n", "3"}}},
		"empty":     {"an empty list is one", "names.filter(x, x == 'c').size() == 0", nil, []Step{{`names.filter(x, x == "c").size() == 0`, "true"}, {`names.filter(x, x == "c").size()`, "0"}, {`names.filter(x, x == "c")`, "[]"}, {"names", `["a","<b>"]`}}},
		"failure":   {"an error is a value", "m.z == 'y'", nil, []Step{{`m.z == "y"`, "error: no such key: z"}, {"m.z", "error: no such key: z"}}},
		"unknown":   {"so is what is not known", "n > 2 || names.size() > 9", NewUnknowns([]string{"names"}), []Step{{"n > 2 || names.size() > 9", "true"}, {"n > 2", "true"}, {"n", "3"}}},
		"unknown 2": {"", "names.size() > 9", NewUnknowns([]string{"names"}), []Step{{"names.size() > 9", "unknown"}, {"names.size()", "unknown"}, {"names", "unknown"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := env.Bool(tc.src)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Trace(t.Context(), Input{Vars: in, Unknown: tc.unknown})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
