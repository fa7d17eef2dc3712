package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestCasesStandBesidePolicies(t *testing.T) {
	const (
		policy = "apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec: {default: deny}\n"
		cases  = "# of p\npolicy: p\ntests:\n- {name: a, call: {tool: read}, expect: deny}\n"
	)
	for name, tt := range map[string]struct {
		reason, file, text string
		documents, cases   int
		complaint          string
	}{
		"beside":          {"they are no object", "tests.yaml", cases, 0, 1, ""},
		"named for it":    {"the name ends so", "p-tests.yml", cases, 0, 1, ""},
		"two":             {"for several policies", "tests.yaml", cases + "---\n" + cases, 0, 2, ""},
		"a policy":        {"an object is one, whatever its file is called", "tests.yaml", policy, 1, 0, ""},
		"both":            {"beside each other", "tests.yaml", policy + "---\n" + cases, 1, 1, ""},
		"another name":    {"a slip in the name must not hide an object", "cases.yaml", cases, 1, 0, ""},
		"half an object":  {"nor is a policy that forgot its kind passed over: admission misses it", "tests.yaml", "apiVersion: agentctl.dev/v1alpha1\n" + cases, 1, 0, ""},
		"unknown field":   {"no field is passed over", "tests.yaml", cases + "tsts: []\n", 0, 1, `unknown field "tsts"`},
		"wrong case":      {"each case is held against the schema", "tests.yaml", strings.Replace(cases, "expect: deny", "expect: no way", 1), 0, 1, `"no way" is not one of`},
		"no policy":       {"they are about one", "tests.yaml", strings.Replace(cases, "policy: p", "policy:", 1), 0, 1, "names no policy"},
		"a list of lists": {"and are cases", "tests.yaml", "policy: p\ntests: [[]]\n", 0, 1, "wants a mapping, not a list"},
		"broken":          {"broken text is told", "tests.yaml", "policy: p\ntests: [\n", 0, 0, "YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), tt.file)
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			set, found := Load(t.Context(), []string{path}, nil)
			if len(set.Cases) > 0 {
				t.Error("cases are decoded before anybody wants them")
			}
			found = append(found, set.ReadCases(t.Context())...)
			if len(set.Cases) != tt.cases || tt.documents != len(set.Documents) && tt.complaint == "" {
				t.Errorf("%d documents and %d cases, want %d and %d: %s", len(set.Documents), len(set.Cases), tt.documents, tt.cases, tt.reason)
			}
			var all []string
			for _, f := range found {
				all = append(all, f.Message)
			}
			if text := strings.Join(all, "\n"); found.HasErrors() != (tt.complaint != "") || !strings.Contains(text, tt.complaint) {
				t.Errorf("found %q, want %q: %s", text, tt.complaint, tt.reason)
			}
			for _, d := range set.Cases {
				if _, ok := d.Object.(*v1alpha1.Policy); !ok {
					t.Errorf("a list of cases became %T", d.Object)
				}
			}
		})
	}
}

func TestCasesAreFoundWhereTheyStand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tests.yaml")
	if err := os.WriteFile(path, []byte("# x\ntests:\n- name: a\n  call: {tool: read}\n  expect: deny\npolicy: p\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set, _ := Load(t.Context(), []string{path}, nil)
	if found := set.ReadCases(t.Context()); len(found) > 0 {
		t.Fatal(found)
	}
	for field, want := range map[string]int{"spec.tests[0]": 3, "spec.tests[0].expect": 5, "metadata.name": 6} {
		if at := set.Cases[0].Locate(field); at.Line != want {
			t.Errorf("%s stands in line %d, want %d", field, at.Line, want)
		}
	}
}
