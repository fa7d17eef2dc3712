package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/model"

	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// Bounds of a schema that the API compiles.
const (
	maxOptional = 24
	maxChoices  = 16
)

// stringFormats are those that the API supports.
var stringFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}

// strict returns a schema in the form that the API accepts for an answer, and
// whether there is one: the API supports a part of JSON Schema, and refuses the
// rest. Objects are closed, because the API requires it: what fits the closed
// schema fits the original. So a schema with allOf is not sent: its parts would
// be closed to each other.
func strict(schema json.RawMessage) (json.RawMessage, bool) {
	schema, err := model.CompactSchema(schema)
	if err != nil {
		return nil, false
	}
	s := stricter{}
	s.c.Reset(schema)
	b := s.schema(nil)
	s.c.End()
	if s.c.Err() != nil || s.refused || s.optional > maxOptional || s.choices > maxChoices {
		return nil, false
	}
	return b, true
}

// stricter reads a schema and writes it again.
type stricter struct {
	c jsonpass.Cursor
	// refused is set when the API would refuse what was read.
	refused bool
	// defines is set while a definition is being read: one that refers to
	// another may refer to itself, which the API refuses.
	defines           bool
	optional, choices int
}

// object is what must be known of a schema to close it.
type object struct {
	typed, closed, shaped, choice bool
	names                         int
	required                      []string
}

func (s *stricter) schema(b []byte) []byte {
	if s.c.Next() != '{' {
		s.refused = true // true, which holds nothing
		s.c.Skip()
		return b
	}
	var o object
	b = append(b, '{')
	s.c.Object(func(key []byte) {
		name := string(key)
		if name == "$schema" || name == "$comment" {
			s.c.Skip()
			return
		}
		b = append(jsonpass.AppendString(jsonpass.Open(b), name), ':')
		b = s.keyword(b, name, &o)
	})
	// A closed object and its closed choices would forbid each other's members.
	s.refused = s.refused || !o.shaped || o.choice && (o.typed || o.names > 0)
	if o.typed {
		s.optional += max(0, o.names-len(o.required))
		if !o.closed {
			b = append(jsonpass.Open(b), `"additionalProperties":false`...)
		}
	}
	return append(b, '}')
}

// keyword copies the value of a keyword.
func (s *stricter) keyword(b []byte, name string, o *object) []byte {
	switch name {
	case "properties":
		return s.schemas(b, &o.names)
	case "$defs", "definitions":
		outer := s.defines
		s.defines = true
		b = s.schemas(b, new(int))
		s.defines = outer
		return b
	case "items":
		return s.schema(b)
	case "anyOf":
		o.shaped, o.choice = true, true
		s.choices++
		b = append(b, '[')
		s.c.Array(func() { b = s.schema(jsonpass.Open(b)) })
		return append(b, ']')
	}
	raw := s.c.Raw()
	if s.c.Err() == nil && !s.takes(name, raw, o) {
		s.refused = true
	}
	return append(b, raw...)
}

// schemas copies an object of schemas.
func (s *stricter) schemas(b []byte, count *int) []byte {
	b = append(b, '{')
	s.c.Object(func(key []byte) {
		*count++
		b = append(jsonpass.AppendString(jsonpass.Open(b), string(key)), ':')
		b = s.schema(b)
	})
	return append(b, '}')
}

// takes reports whether the API accepts a keyword with its value.
func (s *stricter) takes(name string, raw []byte, o *object) bool {
	switch name {
	case "title", "description", "default":
		return true
	case "enum", "const":
		o.shaped = true
		return true
	case "type":
		o.shaped = true
		var types []string
		if json.Unmarshal(raw, &types) == nil {
			s.choices++
			o.typed = slices.Contains(types, "object")
			return true
		}
		o.typed = string(raw) == `"object"`
		return raw[0] == '"'
	case "required":
		return json.Unmarshal(raw, &o.required) == nil
	case "additionalProperties":
		o.closed = true
		return string(raw) == "false"
	case "minItems":
		return string(raw) == "0" || string(raw) == "1"
	case "format":
		var format string
		return json.Unmarshal(raw, &format) == nil && slices.Contains(stringFormats, format)
	case "$ref":
		o.shaped = true
		var to string
		return json.Unmarshal(raw, &to) == nil && !s.defines && (strings.HasPrefix(to, "#/$defs/") || strings.HasPrefix(to, "#/definitions/"))
	}
	return false
}
