package crds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

const draft07 = "http://json-schema.org/draft-07/schema#"

// EditorSchema returns a JSON Schema (draft-07, which editors know best) of
// manifests of one kind. It is stricter than the CRD where that helps while
// typing: a misspelled field is marked.
func EditorSchema(kind string) ([]byte, error) {
	k, ok := Kind(kind)
	if !ok {
		return nil, unknownKind(kind)
	}
	schema := k.editor()
	schema["$schema"] = draft07
	return indent(schema)
}

// EditorSchemaAll returns a JSON Schema (draft-07) of manifests of every kind;
// the manifest's kind says which one counts.
func EditorSchemaAll() ([]byte, error) {
	definitions := map[string]any{}
	var kinds []any
	for _, name := range Kinds() {
		k, _ := Kind(name)
		definitions[name] = k.editor()
		kinds = append(kinds, map[string]any{"$ref": "#/definitions/" + name})
	}
	return indent(map[string]any{
		"$schema":     draft07,
		"title":       GroupVersion,
		"description": "A manifest of any kind of " + GroupVersion + ".",
		"definitions": definitions,
		"oneOf":       kinds,
	})
}

func (k *KindSchema) editor() map[string]any {
	schema := editorSchema(k.whole())
	schema["title"] = k.Kind
	properties := object(schema["properties"])
	properties["kind"] = constant(properties["kind"])
	properties["apiVersion"] = constant(properties["apiVersion"])
	object(properties["metadata"])["anyOf"] = []any{
		map[string]any{"required": []any{"name"}},
		map[string]any{"required": []any{"generateName"}},
	}
	if status, ok := properties["status"].(map[string]any); ok {
		// Written by a controller; an exported object still has it.
		properties["status"] = map[string]any{"type": "object", "readOnly": true, "description": status["description"]}
	}
	return schema
}

// constant narrows an enum of one value to a const, by which editors choose
// among the kinds.
func constant(v any) map[string]any {
	schema := object(v)
	schema["const"] = list(schema["enum"])[0]
	delete(schema, "enum")
	return schema
}

// editorSchema translates one node of a structural schema.
func editorSchema(s map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range s {
		switch key {
		case "description":
			out[key] = reflow(fmt.Sprint(v))
		case "properties":
			properties := map[string]any{}
			for name, p := range object(v) {
				properties[name] = editorSchema(object(p))
			}
			out[key] = properties
		case "items":
			out[key] = editorSchema(object(v))
		case "additionalProperties":
			out[key] = v
			if m, ok := v.(map[string]any); ok {
				out[key] = editorSchema(m)
			}
		case "format":
			// The formats for numbers are OpenAPI's, not JSON Schema's.
			if v == "date-time" {
				out[key] = v
			}
		case "x-kubernetes-list-type":
			if v == "set" {
				out["uniqueItems"] = true
			}
		default:
			if !strings.HasPrefix(key, "x-kubernetes-") && key != "nullable" {
				out[key] = copyValue(v)
			}
		}
	}
	closeObject(out, s)
	return out
}

// closeObject says about an object what the CRD says by pruning: fields that
// are not declared do not exist, except where unknown ones are kept.
func closeObject(out, s map[string]any) {
	if alternative(s) {
		mapping := map[string]any{"type": "object", "additionalProperties": false}
		for _, key := range []string{"properties", "required"} {
			if v, ok := out[key]; ok {
				mapping[key] = v
				delete(out, key)
			}
		}
		out["anyOf"] = []any{map[string]any{"type": "string"}, mapping}
		return
	}
	if s["x-kubernetes-preserve-unknown-fields"] == true {
		out["type"] = "object"
		out["additionalProperties"] = true
	}
	if _, open := out["additionalProperties"]; !open && out["properties"] != nil {
		out["additionalProperties"] = false
	}
	if s["nullable"] == true {
		out["type"] = []any{s["type"], "null"}
	}
}

// alternative reports whether a value is a text or a mapping. A structural schema has no
// type then, and describes the mapping.
func alternative(s map[string]any) bool { return s["type"] == nil && s["properties"] != nil }

// reflow joins the lines of a paragraph, which are as wide as Go comments.
func reflow(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}

func indent(schema map[string]any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(schema); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
