package v1alpha1

import (
	"reflect"
	"testing"
)

func TestEverySourceOfAToolHasItsKind(t *testing.T) {
	kinds := ToolSourceKinds()
	if n := reflect.TypeFor[ToolSource]().NumField(); len(kinds) != n {
		t.Fatalf("%d fields, kinds %q", n, kinds)
	}
	for i, want := range kinds {
		var s ToolSource
		field := reflect.ValueOf(&s).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
		if got := s.Kind(); got != want {
			t.Errorf("the kind of a source with %s is %q: a case in ToolSource.Kind is missing", want, got)
		}
	}
	if got := new(ToolSource).Kind(); got != "" {
		t.Errorf("the kind of no source is %q", got)
	}
}
