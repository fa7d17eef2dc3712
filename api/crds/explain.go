package crds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/reason"
)

// Explanation is what the schema says about one field, or about a kind.
type Explanation struct {
	// Kind the path starts at.
	Kind string
	// Path of the field below the kind, in the schema's spelling; empty for the
	// kind itself.
	Path []string
	// Field is what the path names; its Fields are one level deep, or all levels
	// when asked recursively.
	Field Field
}

// Field is one field of a kind.
type Field struct {
	// Name as a manifest writes it.
	Name string
	// Type in short: string, integer, Object, []string, map[string]string, any.
	Type string
	// Required fields have no default.
	Required bool
	// Description as the Go comment has it, one line per paragraph.
	Description string
	// Enum lists the values allowed, if they are few.
	Enum []string
	// Default as JSON; empty: none.
	Default string
	// Bounds are the limits of value or size in words, for example "1 to 64".
	Bounds string
	// Fields of an object, or of the elements of a list or map, by name.
	Fields []Field
}

// UnknownError reports that a path names something that does not exist.
type UnknownError struct {
	// Parent is the path that does exist: "" where the kind itself is unknown.
	Parent string
	// Name that was not found.
	Name string
	// Known are the names that exist there.
	Known []string
}

// Suggestion returns the known name that was most likely meant, or "".
func (e *UnknownError) Suggestion() string { return reason.Nearest(e.Name, e.Known) }

func (e *UnknownError) Error() string {
	what := fmt.Sprintf("%s has no field %q", e.Parent, e.Name)
	if e.Parent == "" {
		what = fmt.Sprintf("there is no kind %q", e.Name)
	}
	switch s := e.Suggestion(); {
	case s != "":
		return what + fmt.Sprintf("; did you mean %q?", s)
	case len(e.Known) == 0:
		return what + "; it has no fields"
	default:
		return what + "; there are: " + strings.Join(e.Known, ", ")
	}
}

func unknownKind(name string) error {
	return &UnknownError{Name: name, Known: Kinds()}
}

// Explain looks up a dotted path such as agent.spec.limits. The first word is a
// kind in any spelling Resolve knows; lists and maps are passed through, so that
// agent.spec.tools.name is a field of an entry.
func Explain(path string, recursive bool) (*Explanation, error) {
	words := strings.Split(strings.TrimSuffix(strings.TrimSpace(path), "."), ".")
	kind, ok := Resolve(words[0])
	if !ok {
		return nil, unknownKind(words[0])
	}
	k, _ := Kind(kind)
	schema, name, required := k.whole(), kind, false
	e := &Explanation{Kind: kind}
	for _, word := range words[1:] {
		inner := element(schema)
		fields := object(inner["properties"])
		found := lookUp(fields, word)
		if found == "" {
			parent := strings.Join(append([]string{strings.ToLower(kind)}, e.Path...), ".")
			return nil, &UnknownError{Parent: parent, Name: word, Known: slices.Sorted(maps.Keys(fields))}
		}
		schema, name, required = object(fields[found]), found, slices.Contains(list(inner["required"]), any(found))
		e.Path = append(e.Path, found)
	}
	e.Field = describe(name, schema, required)
	e.Field.Fields = fieldsOf(schema, recursive)
	return e, nil
}

// lookUp finds a field by its name in any case.
func lookUp(fields map[string]any, word string) string {
	if _, ok := fields[word]; ok {
		return word
	}
	for name := range fields {
		if strings.EqualFold(name, word) {
			return name
		}
	}
	return ""
}

// element returns what a list or map holds, through all levels; anything else
// is its own element.
func element(schema map[string]any) map[string]any {
	for {
		next := object(schema["items"])
		if next == nil {
			next = object(schema["additionalProperties"])
		}
		if next == nil {
			return schema
		}
		schema = next
	}
}

func fieldsOf(schema map[string]any, recursive bool) []Field {
	inner := element(schema)
	properties := object(inner["properties"])
	required := list(inner["required"])
	var fields []Field
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property := object(properties[name])
		f := describe(name, property, slices.Contains(required, any(name)))
		if recursive {
			f.Fields = fieldsOf(property, true)
		}
		fields = append(fields, f)
	}
	return fields
}

func describe(name string, schema map[string]any, required bool) Field {
	f := Field{
		Name: name, Type: typeName(schema), Required: required,
		Bounds: bounds(schema),
	}
	if text, ok := schema["description"].(string); ok {
		f.Description = reflow(text)
	}
	if def, ok := schema["default"]; ok {
		f.Default = compact(def)
	}
	for _, v := range list(element(schema)["enum"]) {
		f.Enum = append(f.Enum, fmt.Sprint(v))
	}
	return f
}

func typeName(schema map[string]any) string {
	if schema["x-kubernetes-int-or-string"] == true {
		return "Quantity"
	}
	if alternative(schema) {
		return "string|Object"
	}
	if schema["x-kubernetes-preserve-unknown-fields"] == true {
		return "any"
	}
	switch t, _ := schema["type"].(string); t {
	case "array":
		return "[]" + typeName(object(schema["items"]))
	case "object":
		if values := object(schema["additionalProperties"]); values != nil {
			return "map[string]" + typeName(values)
		}
		return "Object"
	case "":
		return "any"
	default:
		return t
	}
}

// bounds puts the limits of a number, a text or a list into words.
func bounds(schema map[string]any) string {
	for _, b := range []struct{ low, high, unit string }{
		{"minimum", "maximum", ""},
		{"minLength", "maxLength", " characters"},
		{"minItems", "maxItems", " entries"},
		{"minProperties", "maxProperties", " fields"},
	} {
		low, high := schema[b.low], schema[b.high]
		switch {
		case low == nil && high == nil:
			continue
		case high == nil && low == int64(1) && b.unit != "":
			return "not empty"
		case high == nil:
			return fmt.Sprintf("at least %v%s", low, b.unit)
		case low == nil:
			return fmt.Sprintf("at most %v%s", high, b.unit)
		case low == high:
			return fmt.Sprintf("exactly %v%s", low, strings.Replace(b.unit, "fields", "field", 1))
		default:
			return fmt.Sprintf("%v to %v%s", low, high, b.unit)
		}
	}
	return ""
}
