package openai

import (
	"bytes"
	"encoding/json"
	"slices"

	"agentctl.dev/agentctl/runner/model"
)

// Bounds of what the API holds a model to, as OpenAI documents them.
const (
	maxDepth      = 10
	maxProperties = 5000
	maxEnum       = 1000
)

// strictKeywords are the keywords of a schema that the API enforces. Any other
// keyword is left to the validation of the answer.
var strictKeywords = []string{
	"$defs", "$ref", "$schema", "additionalProperties", "anyOf", "const", "definitions", "description", "enum", "exclusiveMaximum",
	"exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern", "properties", "required",
	"title", "type",
}

// strictFormats are the formats of strings that the API supports.
var strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// schema returns the schema to send with a conversation's requests. nil: the
// server is not known to support one, or the schema is not that of an object,
// which the API refuses.
func (c *Conversation) schema(given model.GivenParameters, schema json.RawMessage) json.RawMessage {
	wanted, said := given.Values[structured]
	send := c.Official()
	if said {
		send = string(bytes.TrimSpace(wanted)) == "true"
	}
	if !send || len(schema) == 0 || has(given.Always, "response_format") {
		return nil
	}
	var root struct{ Type any }
	if json.Unmarshal(schema, &root) != nil || root.Type != "object" {
		return nil
	}
	plain, err := model.CompactSchema(schema)
	if err != nil {
		return nil
	}
	return plain
}

// appendSchema writes a schema under a name, strict where the API can be: it
// refuses strictness about any other schema.
func appendSchema(b []byte, schema json.RawMessage) []byte {
	b = append(b, `"name":"answer","schema":`...)
	b = append(b, schema...)
	if strict(schema) {
		return append(b, `,"strict":true`...)
	}
	return append(b, `,"strict":false`...)
}

// strict reports whether the API can enforce a schema completely: all members
// of all objects are required, no others are allowed, and every keyword is one
// that the API supports.
func strict(schema json.RawMessage) bool {
	var root map[string]json.RawMessage
	if json.Unmarshal(schema, &root) != nil || root["anyOf"] != nil {
		return false
	}
	var s strictness
	return s.schema(schema, 1) && s.properties <= maxProperties && s.enums <= maxEnum
}

// strictness has the counts while a schema is checked.
type strictness struct{ properties, enums int }

func (s *strictness) schema(raw json.RawMessage, depth int) bool {
	var all map[string]json.RawMessage
	if depth > maxDepth || json.Unmarshal(raw, &all) != nil || all == nil {
		return false
	}
	for name, value := range all {
		if !slices.Contains(strictKeywords, name) || !s.keyword(name, value, depth) {
			return false
		}
	}
	return s.object(all)
}

// keyword checks one keyword of a schema.
func (s *strictness) keyword(name string, value json.RawMessage, depth int) bool {
	switch name {
	case "properties", "$defs", "definitions":
		var named map[string]json.RawMessage
		if json.Unmarshal(value, &named) != nil {
			return false
		}
		s.properties += len(named)
		for _, v := range named {
			if !s.schema(v, depth+1) {
				return false
			}
		}
	case "items":
		return s.schema(value, depth+1)
	case "anyOf":
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			return false
		}
		return !slices.ContainsFunc(list, func(v json.RawMessage) bool { return !s.schema(v, depth+1) })
	case "enum":
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			return false
		}
		s.enums += len(list)
	case "format":
		var f string
		return json.Unmarshal(value, &f) == nil && slices.Contains(strictFormats, f)
	}
	return true
}

// object judges a schema that may be one of objects.
func (s *strictness) object(all map[string]json.RawMessage) bool {
	var kinds []string
	if json.Unmarshal(all["type"], &kinds) != nil {
		kinds = make([]string, 1)
		if json.Unmarshal(all["type"], &kinds[0]) != nil {
			kinds = nil
		}
	}
	if !slices.Contains(kinds, "object") {
		// Without a type it is a reference, a choice or a list of values.
		return all["properties"] == nil && (kinds != nil || all["$ref"] != nil || all["anyOf"] != nil || all["enum"] != nil || all["const"] != nil)
	}
	var properties map[string]json.RawMessage
	var required []string
	if json.Unmarshal(all["properties"], &properties) != nil || json.Unmarshal(all["required"], &required) != nil {
		return false
	}
	for name := range properties {
		if !slices.Contains(required, name) {
			return false
		}
	}
	return string(bytes.TrimSpace(all["additionalProperties"])) == "false" && len(required) == len(properties)
}
