package crds

import "maps"

// metadata is the part of metav1.ObjectMeta that people write. A CRD says only
// "object" about it; servers fill in the rest.
func metadata() map[string]any {
	text := func(description string) map[string]any {
		return map[string]any{"type": "string", "description": description}
	}
	texts := func(description string) map[string]any {
		return map[string]any{
			"type": "object", "description": description,
			"additionalProperties": map[string]any{"type": "string"},
		}
	}
	name := text("Name of the object: lower-case letters, digits, - and . Required, except where generateName is given.")
	name["maxLength"] = int64(253)
	name["pattern"] = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	return map[string]any{
		"type":        "object",
		"description": "Metadata names and labels the object.",
		"properties": map[string]any{
			"name":         name,
			"generateName": text("GenerateName is a prefix to which a server adds random letters. Only for objects sent to one."),
			"namespace":    text("Namespace of the object. Default: that of the context."),
			"labels":       texts("Labels are short pairs that selectors match."),
			"annotations":  texts("Annotations are pairs for programs; nothing selects by them."),
		},
	}
}

// whole returns the schema of a kind as people write it: the CRD's, with
// metadata spelled out.
func (k *KindSchema) whole() map[string]any {
	properties := map[string]any{}
	maps.Copy(properties, object(k.Schema["properties"]))
	properties["apiVersion"] = map[string]any{
		"type": "string", "enum": []any{GroupVersion},
		"description": "APIVersion is the group and version of the kind: " + GroupVersion + ". Required.",
	}
	properties["kind"] = map[string]any{
		"type": "string", "enum": []any{k.Kind},
		"description": "Kind of the object: " + k.Kind + ". Required.",
	}
	properties["metadata"] = metadata()
	schema := maps.Clone(k.Schema)
	schema["properties"] = properties
	schema["required"] = append([]any{"apiVersion", "kind", "metadata"}, list(schema["required"])...)
	return schema
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
