package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// walker finds the mistakes of a value that the library has refused.
type walker struct {
	root  any
	found []Mistake
	// anchors are the places of schemas with a name; nil: they were not looked for.
	anchors map[string][]string
}

func (w *walker) wrong(place []string, format string, args ...any) {
	w.add(Mistake{At: place, Message: fmt.Sprintf(format, args...)})
}

func (w *walker) add(m Mistake) {
	if len(w.found) < most {
		w.found = append(w.found, m)
	}
}

// value compares a value with a schema, keyword by keyword.
func (w *walker) value(value, schema any, place []string, depth int) {
	if depth > maxDepth || len(w.found) >= most {
		return
	}
	s, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			w.wrong(place, "nothing may stand here")
		}
		return
	}
	if ref, ok := s["$ref"].(string); ok {
		if target, ok := w.resolve(ref); ok {
			w.value(value, target, place, depth+1)
		}
	}
	if !w.typed(value, s, place) {
		return // what follows speaks of another type
	}
	if enum, ok := s["enum"].([]any); ok && !slices.ContainsFunc(enum, func(e any) bool { return reflect.DeepEqual(e, value) }) {
		w.wrong(place, "want one of %s, got %s", literals(enum), show(value))
	}
	if want, ok := s["const"]; ok && !reflect.DeepEqual(want, value) {
		w.wrong(place, "want %s, got %s", literals([]any{want}), show(value))
	}
	switch v := value.(type) {
	case map[string]any:
		w.object(v, s, place, depth)
	case []any:
		w.array(v, s, place, depth)
	case string:
		w.text(v, s, place)
	case float64:
		w.number(v, s, place)
	}
	w.combined(value, s, place, depth)
}

// typed reports whether the value has a type that the schema allows.
func (w *walker) typed(value any, s map[string]any, place []string) bool {
	var want []string
	switch t := s["type"].(type) {
	case string:
		want = []string{t}
	case []any:
		for _, name := range t {
			if name, ok := name.(string); ok {
				want = append(want, name)
			}
		}
	}
	if len(want) == 0 || slices.ContainsFunc(want, func(t string) bool { return is(value, t) }) {
		return true
	}
	w.wrong(place, "want %s, got %s", strings.Join(want, " or "), show(value))
	return false
}

func is(value any, name string) bool {
	switch v := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	}
	return false
}

func (w *walker) object(v map[string]any, s map[string]any, place []string, depth int) {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if name, ok := name.(string); ok {
			if _, there := v[name]; !there {
				w.add(Mistake{At: place, Message: fmt.Sprintf("field %q is missing", name), Missing: name})
			}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		here := at(place, name)
		known := false
		if sub, ok := properties[name]; ok {
			known = true
			w.value(v[name], sub, here, depth+1)
		}
		for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
			if re, err := regexp.Compile(pattern); err == nil && re.MatchString(name) {
				known = true
				w.value(v[name], patterns[pattern], here, depth+1)
			}
		}
		if known {
			continue
		}
		switch rest := s["additionalProperties"].(type) {
		case bool:
			if !rest {
				w.add(Mistake{At: here, Message: fmt.Sprintf("unknown field %q", name), Unknown: name})
			}
		case map[string]any:
			w.value(v[name], rest, here, depth+1)
		}
	}
	w.counted(len(v), s, "minProperties", "maxProperties", "fields", place)
}

func (w *walker) array(v []any, s map[string]any, place []string, depth int) {
	prefix, _ := s["prefixItems"].([]any)
	for i, item := range v {
		if i < len(prefix) {
			w.value(item, prefix[i], at(place, index(i)), depth+1)
		} else if items, ok := s["items"]; ok {
			w.value(item, items, at(place, index(i)), depth+1)
		}
	}
	w.counted(len(v), s, "minItems", "maxItems", "entries", place)
	if s["uniqueItems"] != true {
		return
	}
	for i := range v {
		if slices.ContainsFunc(v[:i], func(o any) bool { return reflect.DeepEqual(o, v[i]) }) {
			w.wrong(at(place, index(i)), "stands twice in the list")
		}
	}
}

func (w *walker) text(v string, s map[string]any, place []string) {
	w.counted(utf8.RuneCountInString(v), s, "minLength", "maxLength", "characters", place)
	if pattern, ok := s["pattern"].(string); ok {
		if re, err := regexp.Compile(pattern); err == nil && !re.MatchString(v) {
			w.wrong(place, "%s does not match %s", show(v), pattern)
		}
	}
}

func (w *walker) counted(n int, s map[string]any, least, greatest, what string, place []string) {
	if limit, ok := s[least].(float64); ok && float64(n) < limit {
		w.wrong(place, "want at least %v %s, got %d", limit, what, n)
	}
	if limit, ok := s[greatest].(float64); ok && float64(n) > limit {
		w.wrong(place, "want at most %v %s, got %d", limit, what, n)
	}
}

func (w *walker) number(v float64, s map[string]any, place []string) {
	for _, bound := range []struct {
		keyword, text string
		broken        func(limit float64) bool
	}{
		{"minimum", "at least", func(l float64) bool { return v < l }},
		{"maximum", "at most", func(l float64) bool { return v > l }},
		{"exclusiveMinimum", "more than", func(l float64) bool { return v <= l }},
		{"exclusiveMaximum", "less than", func(l float64) bool { return v >= l }},
		{"multipleOf", "a multiple of", func(l float64) bool { return l != 0 && math.Mod(v, l) != 0 }},
	} {
		if limit, ok := s[bound.keyword].(float64); ok && bound.broken(limit) {
			w.wrong(place, "want %s %v, got %s", bound.text, limit, show(v))
		}
	}
}

// combined checks allOf, and anyOf and oneOf when no branch matches: of several branches,
// the mistakes of the first are reported.
func (w *walker) combined(value any, s map[string]any, place []string, depth int) {
	all, _ := s["allOf"].([]any)
	for _, sub := range all {
		w.value(value, sub, place, depth+1)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		ways, _ := s[keyword].([]any)
		var first []Mistake
		fits := len(ways) == 0
		for i, way := range ways {
			try := walker{root: w.root, anchors: w.anchors}
			try.value(value, way, place, depth+1)
			fits = fits || len(try.found) == 0
			if i == 0 {
				first = try.found
			}
		}
		if !fits {
			for _, m := range first {
				w.add(m)
			}
		}
	}
}

// resolve follows a reference inside of the schema.
func (w *walker) resolve(ref string) (any, bool) {
	here := w.root
	place, ok := w.pointer(ref)
	if !ok {
		return nil, false
	}
	for _, part := range place {
		switch v := here.(type) {
		case map[string]any:
			next, ok := v[part]
			if !ok {
				return nil, false
			}
			here = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			here = v[i]
		default:
			return nil, false
		}
	}
	return here, true
}

func literals(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			return "the listed values"
		}
		texts[i] = string(b)
	}
	return strings.Join(texts, ", ")
}
