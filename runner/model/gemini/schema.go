package gemini

import (
	"encoding/json"
	"slices"
	"strings"
)

// keywords are those of JSON Schema that the API enforces. It accepts all others as well,
// without enforcing them: a schema with one is given to the model as text instead.
var keywords = []string{
	"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems",
	"minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required", "propertyOrdering",
	// These allow and forbid nothing.
	"$schema", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly",
}

// supported reports whether the API enforces the whole schema.
func supported(raw json.RawMessage) bool {
	var root map[string]any
	if json.Unmarshal(raw, &root) != nil || len(root) == 0 {
		return false
	}
	return (&walk{root: root, seen: map[string]bool{}}).schema(root)
}

// walk looks at every schema inside a schema, and at each named one once.
type walk struct {
	root map[string]any
	// open are the names that are being looked at: the API takes circles in few
	// places only. Seen are those that were.
	open []string
	seen map[string]bool
}

func (w *walk) schema(v any) bool {
	s, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for k, v := range s {
		if !slices.Contains(keywords, k) || !w.keyword(k, v) {
			return false
		}
	}
	if ref, ok := s["$ref"]; ok {
		// Only keywords with a $ may be next to a reference.
		for k := range s {
			if !strings.HasPrefix(k, "$") {
				return false
			}
		}
		return w.follow(ref)
	}
	return true
}

func (w *walk) keyword(k string, v any) bool {
	switch k {
	case "properties", "$defs":
		named, ok := v.(map[string]any)
		for _, s := range named {
			ok = ok && w.schema(s)
		}
		return ok
	case "anyOf", "oneOf", "prefixItems":
		list, ok := v.([]any)
		for _, s := range list {
			ok = ok && w.schema(s)
		}
		return ok
	case "items":
		return w.schema(v)
	case "additionalProperties":
		_, plain := v.(bool)
		return plain || w.schema(v)
	case "enum":
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool {
			switch v.(type) {
			case string, float64:
				return false
			}
			return true
		})
	}
	return true
}

// follow looks at what a reference names.
func (w *walk) follow(ref any) bool {
	text, ok := ref.(string)
	name, local := strings.CutPrefix(text, "#/$defs/")
	if !ok || !local || slices.Contains(w.open, name) {
		return false
	}
	if w.seen[name] {
		return true
	}
	w.seen[name] = true
	defs, _ := w.root["$defs"].(map[string]any)
	s, ok := defs[name]
	w.open = append(w.open, name)
	defer func() { w.open = w.open[:len(w.open)-1] }()
	return ok && w.schema(s)
}
