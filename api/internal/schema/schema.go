// Package schema derives the published JSON Schemas from our Go types, their comments and their constants.
package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"agentctl.dev/agentctl/api/message"
)

// Draft is the dialect of the published schemas.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// Source holds what the reflection cannot see: comments and closed lists.
type Source struct {
	docs  map[string]string // message.Usage, message.Usage.Reasoning
	enums map[string][]any  // message.Action
	lists map[string][]any  // event.RunFinished.phase
}

// Enum closes the list of values of one field, named as package.Type.member,
// where the Go type is a plain string. A pointer's null is added by Of.
func (s *Source) Enum(field string, values ...any) { s.lists[field] = values }

// Constants returns the values of the constants of a type, named as package.Type.
func (s *Source) Constants(typ string) []any { return s.enums[typ] }

// Of returns the schema of a type: comments are descriptions, types with
// constants are closed lists, and objects take no members but their own.
func (s *Source) Of(t reflect.Type) (*jsonschema.Schema, error) {
	known := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[message.Cost]():    {Type: "string", Pattern: `^-?[0-9]+\.[0-9]{2,12}$`},
	}
	out, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, err
	}
	s.describe(out, t)
	return out, nil
}

func (s *Source) describe(out *jsonschema.Schema, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := typeName(t)
	if values := s.enums[name]; values != nil && t.Kind() == reflect.String {
		out.Enum = values
	}
	switch t.Kind() {
	case reflect.Slice:
		if out.Items != nil {
			s.describe(out.Items, t.Elem())
		}
	case reflect.Struct:
		out.Description = s.docs[name]
		s.describeFields(out, t)
	}
}

func (s *Source) describeFields(out *jsonschema.Schema, t reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		property := out.Properties[member]
		if f.Anonymous || property == nil {
			continue
		}
		s.describe(property, f.Type)
		owner := typeName(ownerOf(t, f.Index))
		if doc := s.docs[owner+"."+f.Name]; doc != "" {
			property.Description = doc
		}
		if values := s.lists[typeName(t)+"."+member]; values != nil {
			property.Enum = values
			if f.Type.Kind() == reflect.Pointer {
				property.Enum = append(append([]any(nil), values...), nil)
			}
		}
	}
}

// ownerOf returns the struct that declares a promoted field.
func ownerOf(t reflect.Type, index []int) reflect.Type {
	for _, i := range index[:len(index)-1] {
		t = t.Field(i).Type
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	return t
}

func typeName(t reflect.Type) string {
	path := t.PkgPath()
	return path[strings.LastIndexByte(path, '/')+1:] + "." + t.Name()
}

// Document returns a schema as the text of a published file.
func Document(title, id string, s *jsonschema.Schema) ([]byte, error) {
	s.Schema, s.ID, s.Title = Draft, id, title
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", title, err)
	}
	return append(text, '\n'), nil
}
