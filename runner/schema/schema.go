// Package schema validates JSON values against JSON Schemas (2020-12) and reports all mistakes at once.
//
// Whether a value is valid is decided by a library. The mistakes of an invalid value are
// found by walking value and schema side by side: the library stops at its first finding,
// but a model, or a person, should be able to fix all of them at once.
package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

const (
	// maxDepth bounds how deep schemas and values may nest.
	maxDepth = 64
	// most is how many mistakes are reported.
	most = 20
)

// Schema is a JSON Schema that is ready for use.
type Schema struct {
	resolved *jsonschema.Resolved
	root     any
}

// Mistake is one thing that is wrong.
type Mistake struct {
	// At is the place in the value: names and positions, outermost first.
	At []string
	// Message is what is expected and what was found.
	Message string
	// Missing is the name of a field that has to be there, or "".
	Missing string
	// Unknown is the name of a field that must not be there, or "".
	Unknown string
}

// Pointer returns the place as a JSON Pointer.
func (m Mistake) Pointer() string {
	return "/" + strings.Join(m.At, "/")
}

// InvalidError lists the mistakes in a schema itself.
type InvalidError struct{ Mistakes []Mistake }

func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		texts[i] = m.Pointer() + ": " + m.Message
	}
	return "no JSON Schema: " + strings.Join(texts, "; ")
}

// Compile reads a schema. References may lead only inside of it. The error is
// an *InvalidError.
func Compile(raw json.RawMessage) (*Schema, error) {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, &InvalidError{[]Mistake{{Message: err.Error()}}}
	}
	if wrong := lint(root); len(wrong) > 0 {
		return nil, &InvalidError{wrong}
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, &InvalidError{[]Mistake{{Message: err.Error()}}}
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, &InvalidError{[]Mistake{{Message: plain(err)}}}
	}
	return &Schema{resolved, root}, nil
}

// Check returns what is wrong with a value that is JSON; nothing when it
// satisfies the schema.
func (s *Schema) Check(raw json.RawMessage) []Mistake {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return []Mistake{{Message: err.Error()}}
	}
	err := s.resolved.Validate(value)
	if err == nil {
		return nil
	}
	w := walker{root: s.root}
	w.value(value, s.root, nil, 0)
	if len(w.found) == 0 {
		return []Mistake{{Message: plain(err)}}
	}
	return w.found
}

// Properties returns the names of the properties of the value, sorted.
func (s *Schema) Properties() []string {
	object, _ := s.root.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Undeclared returns those of some names that the schema admits without naming
// them: a misspelt one looks like that. Nil where the schema describes names in
// another way than by properties.
func (s *Schema) Undeclared(names []string) []string {
	object, _ := s.root.(map[string]any)
	declared := s.Properties()
	for _, other := range []string{"patternProperties", "propertyNames", "additionalProperties", "allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef"} {
		if _, used := object[other]; used || len(declared) == 0 {
			return nil
		}
	}
	return slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(name string) bool { return slices.Contains(declared, name) })
}

// Type returns the one type that the schema allows for a property, or "".
func (s *Schema) Type(property string) string {
	object, _ := s.root.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	p, _ := properties[property].(map[string]any)
	t, _ := p["type"].(string)
	return t
}

// Defaults are the values that the schema names for properties of the object, by their names.
func (s *Schema) Defaults() map[string]json.RawMessage {
	object, _ := s.root.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	var all map[string]json.RawMessage
	for name, property := range properties {
		p, _ := property.(map[string]any)
		value, declared := p["default"]
		if !declared {
			continue
		}
		raw, err := json.Marshal(value)
		if err != nil {
			continue // what was read from JSON is JSON
		}
		if all == nil {
			all = map[string]json.RawMessage{}
		}
		all[name] = raw
	}
	return all
}

// plain takes the library's own words for the way to a finding out of a text.
func plain(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "validating "); i >= 0 {
		if _, rest, ok := strings.Cut(text[i:], ": "); ok {
			text = rest
		}
	}
	return strings.TrimPrefix(text, "jsonschema.Schema: <anonymous schema>: ")
}

// at returns the place below a place, in memory of its own.
func at(place []string, step ...string) []string {
	return append(slices.Clone(place), step...)
}

func index(i int) string { return strconv.Itoa(i) }

// show writes a value as a person would speak of it.
func show(value any) string {
	const longest = 60
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		if len(v) > longest {
			v = strings.ToValidUTF8(v[:longest], "") + "..."
		}
		return fmt.Sprintf("the text %q", v)
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return "the number " + strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
