package client

import (
	"encoding/json"
	"maps"
	"reflect"
)

// Declared returns what people declare of an object: no status, and nothing of
// what the server counts and notes for itself.
func (o Object) Declared() Object {
	out := maps.Clone(o)
	delete(out, "status")
	meta, _ := out["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	for _, name := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		delete(meta, name)
	}
	out["metadata"] = meta
	return out
}

// Differ reports whether two states of an object differ in what people declare.
func Differ(a, b Object) bool {
	return !reflect.DeepEqual(plainValues(a.Declared()), plainValues(b.Declared()))
}

// plainValues makes values comparable, whatever their Go types.
func plainValues(o Object) any {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}
