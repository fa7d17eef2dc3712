package crds

import (
	"sync"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"github.com/google/go-cmp/cmp"
)

func TestEveryDeclaredKindHasASchema(t *testing.T) {
	if diff := cmp.Diff(v1alpha1.Kinds(), Kinds()); diff != "" {
		t.Fatalf("kinds (-declared +bundled):\n%s", diff)
	}
	if got := v1alpha1.GroupVersion.String(); got != GroupVersion {
		t.Errorf("GroupVersion = %q, the types say %q", GroupVersion, got)
	}
	for _, kind := range Kinds() {
		k, ok := Kind(kind)
		if !ok || k.Kind != kind || k.Schema["type"] != "object" {
			t.Errorf("Kind(%q) = %+v, %v", kind, k, ok)
		}
	}
}

// TestCategories: kubectl get all finds what works, as it finds deployments and
// jobs; what says how, as config maps and roles do, is left alone by kubectl delete all.
func TestCategories(t *testing.T) {
	for name, want := range map[string][]string{"agentctl": Kinds(), "all": {"Agent", "Run"}, "agent": nil, "": nil} {
		if diff := cmp.Diff(want, InCategory(name)); diff != "" {
			t.Errorf("InCategory(%q) (-want +got):\n%s", name, diff)
		}
	}
}

func TestResolveAcceptsEverySpellingOfAKind(t *testing.T) {
	for name, want := range map[string]string{
		"agent": "Agent", "Agents": "Agent", "AG": "Agent", "policy": "Policy", "policies": "Policy",
		"RUNS": "Run", "": "", "pod": "", "agentx": "",
	} {
		got, ok := Resolve(name)
		if got != want || ok != (want != "") {
			t.Errorf("Resolve(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
	if _, ok := Kind("agent"); ok {
		t.Error("Kind takes the exact name only, because that is what a manifest must write")
	}
}

func TestWholeNumbersInSchemasAreInt64(t *testing.T) {
	k, _ := Kind("Agent")
	steps := at(t, k.Schema, "spec", "limits", "maxSteps")
	if got, ok := steps["default"].(int64); !ok || got != 50 {
		t.Errorf("default of maxSteps = %T %v, want int64 50, as a manifest has it", steps["default"], steps["default"])
	}
}

func TestKindIsDecodedOnceHoweverManyAsk(t *testing.T) {
	var wg sync.WaitGroup
	got := make([]*KindSchema, 16)
	for i := range got {
		wg.Go(func() { got[i], _ = Kind("Policy") })
	}
	wg.Wait()
	for _, k := range got {
		if k != got[0] {
			t.Fatal("two callers got two copies")
		}
	}
}

func TestDecodeRefusesABrokenBundle(t *testing.T) {
	for _, text := range []string{"", "[]", "{", `{"a":1e999}`, `{"a":[1e999]}`} {
		if obj, err := decodeObject(text); err == nil {
			t.Errorf("decodeObject(%q) = %v, want an error", text, obj)
		}
	}
	obj, err := decodeObject(`{"a":[1,1.5]}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": []any{int64(1), 1.5}}, obj); diff != "" {
		t.Error(diff)
	}
}

// at walks down the properties of a schema.
func at(t *testing.T, schema map[string]any, path ...string) map[string]any {
	t.Helper()
	for _, name := range path {
		next, ok := object(schema["properties"])[name].(map[string]any)
		if !ok {
			t.Fatalf("no property %q on the way %v", name, path)
		}
		schema = next
	}
	return schema
}

func BenchmarkDecodeKind(b *testing.B) {
	for i := range bundle {
		b.Run(bundle[i].kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decodeObject(bundle[i].schema); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
