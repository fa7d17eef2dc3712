package schema

import (
	"maps"
	"slices"
	"strings"
)

// maxExpanded bounds how many schemas may be applied to one value. References
// that fan out would otherwise make a small schema take for ever.
const maxExpanded = 1000

// refs checks where references lead. The library follows them without looking
// back: a schema that comes back to itself on the same value would never end.
func refs(root any) []Mistake {
	r := &follower{walker: walker{root: root}, sizes: map[string]int{}}
	r.all(root, nil)
	return r.found
}

type follower struct {
	walker
	// sizes counts the schemas that are applied together with the one at a
	// place; 0 while that is being counted.
	sizes map[string]int
}

// all visits every schema of the document.
func (r *follower) all(schema any, place []string) {
	r.size(schema, place)
	for _, c := range children(schema) {
		r.all(c.schema, at(place, c.place...))
	}
}

// size counts a schema and those that are applied to the same value.
func (r *follower) size(schema any, place []string) int {
	key := strings.Join(place, "/")
	if n, seen := r.sizes[key]; seen {
		if n == 0 {
			r.wrong(place, "the schema refers to itself without going deeper into the value")
			return maxExpanded
		}
		return n
	}
	r.sizes[key] = 0
	n := 1
	if s, ok := schema.(map[string]any); ok {
		if ref, ok := s["$ref"].(string); ok {
			n += r.target(ref, at(place, "$ref"))
		}
	}
	for _, c := range children(schema) {
		if c.same {
			n += r.size(c.schema, at(place, c.place...))
		}
	}
	if n > maxExpanded && len(r.found) == 0 {
		r.wrong(place, "more than %d schemas are applied to one value", maxExpanded)
	}
	r.sizes[key] = min(n, maxExpanded)
	return n
}

func (r *follower) target(ref string, place []string) int {
	target, ok := r.resolve(ref)
	if !ok {
		r.wrong(place, "%q leads to nothing in the schema", ref)
		return 0
	}
	to, _ := r.pointer(ref)
	return r.size(target, to)
}

// child is a schema inside of a schema; same: it applies to the same value.
type child struct {
	schema any
	place  []string
	same   bool
}

func children(schema any) (all []child) {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	for _, word := range slices.Sorted(maps.Keys(s)) {
		switch word {
		case "not", "if", "then", "else":
			all = append(all, child{s[word], []string{word}, true})
		case "items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames", "contains":
			all = append(all, child{s[word], []string{word}, false})
		case "allOf", "anyOf", "oneOf", "prefixItems":
			list, _ := s[word].([]any)
			for i, sub := range list {
				all = append(all, child{sub, []string{word, index(i)}, word != "prefixItems"})
			}
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			named, _ := s[word].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(named)) {
				all = append(all, child{named[name], []string{word, name}, word == "dependentSchemas"})
			}
		}
	}
	return all
}
