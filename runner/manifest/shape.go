package manifest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// shape holds an object against the structural schema of its kind. The dialect
// of CRDs is small, and a general JSON Schema engine takes 2.7 ms to compile
// one kind, which is more than a whole start may spend on manifests.
//
// Every mistake is reported, and what is wrong is taken out of the object, so
// that the rest can be decoded and judged.
type shape struct {
	doc      *Document
	found    Findings
	patterns patterns
}

func (s *shape) add(f Finding) { s.found = append(s.found, f) }

// full reports whether there are enough findings. The rest of the document is not checked;
// it is invalid in any case.
func (s *shape) full() bool { return len(s.found) >= MaxFindings }

// wholeSchema is a kind's schema with the metadata that people write; a CRD describes
// metadata only as "object".
func wholeSchema(schema map[string]any) map[string]any {
	whole := maps.Clone(schema)
	properties := maps.Clone(mapping(schema["properties"]))
	properties["metadata"] = metadataSchema()
	delete(properties, "status")
	whole["properties"] = properties
	return whole
}

// metadataSchema knows the fields that an API server adds, too: what it hands
// out can be read again.
func metadataSchema() map[string]any {
	text := map[string]any{"type": "string"}
	texts := map[string]any{"type": "object", "additionalProperties": text}
	anything := map[string]any{"x-kubernetes-preserve-unknown-fields": true}
	return map[string]any{"type": "object", "properties": map[string]any{
		"name": text, "generateName": text, "namespace": text, "labels": texts, "annotations": texts,
		"uid": anything, "resourceVersion": anything, "generation": anything, "selfLink": anything,
		"creationTimestamp": anything, "deletionTimestamp": anything, "deletionGracePeriodSeconds": anything,
		"ownerReferences": anything, "finalizers": anything, "managedFields": anything,
	}}
}

// value checks v and reports whether it can stay.
func (s *shape) value(path string, schema map[string]any, v any) bool {
	if free(schema) {
		s.freeForm(path, v)
		return true
	}
	if !s.typed(path, schema, v) {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		s.object(path, schema, v)
		return true
	case []any:
		return s.list(path, schema, v)
	case string:
		return s.str(path, schema, v)
	case int64:
		return s.number(path, schema, float64(v), v)
	case float64:
		return s.number(path, schema, v, v)
	}
	return true
}

// free reports whether a schema allows any content.
func free(schema map[string]any) bool {
	return schema["x-kubernetes-preserve-unknown-fields"] == true && schema["properties"] == nil
}

// object checks the fields of a mapping and takes out those that cannot stay.
func (s *shape) object(path string, schema, obj map[string]any) {
	properties := mapping(schema["properties"])
	rest := mapping(schema["additionalProperties"])
	for _, key := range slices.Sorted(maps.Keys(obj)) {
		if s.full() {
			return
		}
		v := obj[key]
		property, known := properties[key].(map[string]any)
		if !known && (key == "true" || key == "false") {
			if word := s.word(path, key); word != "" {
				delete(obj, key)
				property, known = properties[word].(map[string]any)
				s.wordKey(path, word, known)
				if !known && rest == nil {
					continue
				}
				key = word
				obj[key] = v
			}
		}
		if !known && rest != nil {
			property, known = rest, true
		}
		if !known {
			s.unknown(Join(path, key), key, v, properties)
			delete(obj, key)
			continue
		}
		if v == nil {
			delete(obj, key) // an empty field is an absent one
			continue
		}
		if !s.value(Join(path, key), property, v) {
			delete(obj, key)
		}
	}
	s.required(path, schema, obj)
	s.union(path, schema, obj)
	s.validations(path, schema, obj)
}

// required reports fields that are missing, but not those that were just
// taken out for another reason.
func (s *shape) required(path string, schema, obj map[string]any) {
	for _, r := range sequence(schema["required"]) {
		name, _ := r.(string)
		if _, ok := obj[name]; ok || s.blamed(path, name) {
			continue
		}
		s.add(s.doc.KeyErrorf(path, "field %q is missing", name).At(Join(path, name)))
	}
}

// blamed reports whether a missing field has been explained already: it was given and
// wrong, misspelt, or there is a literal in its place.
func (s *shape) blamed(path, name string) bool {
	return slices.ContainsFunc(s.found, func(f Finding) bool {
		if f.Severity != Error {
			return false
		}
		literal := name == "valueFrom" && f.Path == Join(path, "value")
		misspelt := f.Suggestion == DidYouMean(name) && parent(f.Path) == path
		return literal || misspelt || f.Path == Join(path, name)
	})
}

// union checks how many fields a mapping has. A mapping with exactly one is a
// choice between its fields.
func (s *shape) union(path string, schema, obj map[string]any) {
	least, hasLeast := integer(schema["minProperties"])
	most, hasMost := integer(schema["maxProperties"])
	n := int64(len(obj))
	if (!hasLeast || n >= least) && (!hasMost || n <= most) {
		return
	}
	given := slices.Sorted(maps.Keys(obj))
	if least == 1 && most == 1 && hasLeast && hasMost {
		choices := strings.Join(slices.Sorted(maps.Keys(mapping(schema["properties"]))), ", ")
		if n == 0 {
			if s.inside(path) {
				return // something was given, and is reported as wrong
			}
			s.add(s.doc.KeyErrorf(path, "needs exactly one of %s; none is given", choices))
			return
		}
		f := s.doc.KeyErrorf(path, "needs exactly one of %s; %s are given", choices, strings.Join(given, " and "))
		s.add(s.doc.at(f, s.doc.LocateKey(Join(path, given[1]))))
		return
	}
	if hasLeast && n < least {
		s.add(s.doc.KeyErrorf(path, "needs at least %d fields, has %d", least, n))
		return
	}
	s.add(s.doc.KeyErrorf(path, "may have at most %d fields, has %d", most, n))
}

// inside reports whether something below a path has been found wrong.
func (s *shape) inside(path string) bool {
	return slices.ContainsFunc(s.found, func(f Finding) bool {
		return f.Severity == Error && len(f.Path) > len(path) && strings.HasPrefix(f.Path, path)
	})
}

// validations keeps the CEL rules for admission, which can evaluate them.
func (s *shape) validations(path string, schema, obj map[string]any) {
	for _, r := range sequence(schema["x-kubernetes-validations"]) {
		rule := mapping(r)
		v := Validation{Path: path, Field: path, Self: obj}
		if v.Rule, _ = rule["rule"].(string); strings.Contains(v.Rule, "oldSelf") {
			continue // about a change of an object, which only the server sees
		}
		v.Message, _ = rule["message"].(string)
		if field, _ := rule["fieldPath"].(string); field != "" {
			v.Field = path + field
		}
		s.doc.Validations = append(s.doc.Validations, v)
	}
}

// list checks the entries of a list. One that is too long is left out: what
// follows may compare its entries with each other.
func (s *shape) list(path string, schema map[string]any, list []any) bool {
	if least, ok := integer(schema["minItems"]); ok && int64(len(list)) < least {
		s.add(s.doc.Errorf(path, "needs at least %d %s", least, plural(least, "entry", "entries")))
	}
	if most, ok := integer(schema["maxItems"]); ok && int64(len(list)) > most {
		s.add(s.doc.Errorf(path, "may have at most %d entries, has %d", most, len(list)))
		return false
	}
	items := mapping(schema["items"])
	if items != nil {
		for i, v := range list {
			if s.full() {
				return false
			}
			if !s.value(Index(path, i), items, v) {
				list[i] = nil // taken out, but the others keep their numbers
			}
		}
	}
	s.unique(path, schema, list)
	return true
}

// unique reports entries that occur twice in a list that is a set or a map.
func (s *shape) unique(path string, schema map[string]any, list []any) {
	kind := schema["x-kubernetes-list-type"]
	if kind != "set" && kind != "map" {
		return
	}
	keys := sequence(schema["x-kubernetes-list-map-keys"])
	first := map[string]int{}
	for i, v := range list {
		id, at := "", Index(path, i)
		if kind == "set" {
			id = fmt.Sprint(v)
		} else {
			var parts []string
			for _, k := range keys {
				name, _ := k.(string)
				part, _ := mapping(v)[name].(string)
				parts = append(parts, part)
				at = Join(Index(path, i), name)
			}
			id = strings.Join(parts, "/")
		}
		if v == nil || id == "" {
			continue
		}
		if s.full() {
			return
		}
		if before, ok := first[id]; ok {
			s.add(s.doc.Errorf(at, "%q is listed twice: the first time in line %d", id, s.doc.Locate(Index(path, before)).Line))
			continue
		}
		first[id] = i
	}
}

// patterns keeps what one Load has compiled: kinds share most of them.
type patterns map[string]*regexp.Regexp

func (p patterns) match(pattern, v string) bool {
	re, ok := p[pattern]
	if !ok {
		// A pattern that Go cannot read stays nil and matches nothing; a test
		// goes through those of all kinds.
		re, _ = regexp.Compile(pattern)
		p[pattern] = re
	}
	return re != nil && re.MatchString(v)
}

func mapping(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func sequence(v any) []any {
	l, _ := v.([]any)
	return l
}

func texts(list []any) []string {
	out := make([]string, 0, len(list))
	for _, v := range list {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

func integer(v any) (int64, bool) {
	n, ok := v.(int64)
	return n, ok
}

func float(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// unknown reports a field that the kind does not have.
func (s *shape) unknown(path, key string, v any, properties map[string]any) {
	names := slices.Sorted(maps.Keys(properties))
	f := s.doc.KeyErrorf(path, "unknown field %q", key)
	f.See = "agentctl explain " + fieldPath(s.doc.Kind, parent(path))
	f.Suggestion = Suggest(key, names)
	if key == "value" && properties["valueFrom"] != nil {
		f.Message = "a literal value is refused: secrets are references"
		f.Suggestion = "write valueFrom: {env: NAME}"
		s.doc.hide(v)
	}
	if f.Suggestion == "" && len(names) > 0 && len(names) <= 12 {
		f.Suggestion = "known fields: " + strings.Join(names, ", ")
	}
	s.add(f)
}

func parent(path string) string {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return ""
}
