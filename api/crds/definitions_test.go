package crds

import (
	"testing"

	"sigs.k8s.io/yaml"
)

func TestDefinitionsAreThoseOfTheKinds(t *testing.T) {
	got := map[string]bool{}
	for _, text := range Definitions() {
		var crd struct {
			Kind string
			Spec struct{ Names struct{ Kind string } }
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		if crd.Kind != "CustomResourceDefinition" {
			t.Errorf("a definition of kind %q", crd.Kind)
		}
		got[crd.Spec.Names.Kind] = true
	}
	for _, kind := range Kinds() {
		if !got[kind] {
			t.Errorf("no definition of %s", kind)
		}
		delete(got, kind)
	}
	if len(got) > 0 {
		t.Errorf("definitions of kinds nobody knows: %v", got)
	}
}
