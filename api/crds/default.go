package crds

// ApplyDefaults fills in what a manifest leaves out, in place and as a
// Kubernetes API server does it: defaults of objects that are absent stay
// absent with them, a default of {} opens an object whose own fields then get
// theirs, and a null where null is no value counts as absent. An unknown kind
// is left alone.
func ApplyDefaults(kind string, obj map[string]any) {
	k, ok := Kind(kind)
	if !ok {
		return
	}
	applyDefaults(obj, k.Schema)
}

func applyDefaults(v any, schema map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		defaultObject(v, schema)
	case []any:
		items, _ := schema["items"].(map[string]any)
		if items == nil {
			return
		}
		for i := range v {
			if def, ok := items["default"]; ok && isUnwantedNull(v[i], items) {
				v[i] = copyValue(def)
			}
			applyDefaults(v[i], items)
		}
	}
}

func defaultObject(obj, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		property, _ := p.(map[string]any)
		value, present := obj[name]
		if present && isUnwantedNull(value, property) {
			delete(obj, name)
			present = false
		}
		if !present {
			def, ok := property["default"]
			if !ok {
				continue
			}
			value = copyValue(def)
			obj[name] = value
		}
		applyDefaults(value, property)
	}
	rest, _ := schema["additionalProperties"].(map[string]any)
	if rest == nil {
		return
	}
	for name, value := range obj {
		if _, known := properties[name]; known {
			continue
		}
		if isUnwantedNull(value, rest) {
			def, ok := rest["default"]
			if !ok {
				delete(obj, name)
				continue
			}
			value = copyValue(def)
			obj[name] = value
		}
		applyDefaults(value, rest)
	}
}

func isUnwantedNull(v any, schema map[string]any) bool {
	return v == nil && schema["nullable"] != true
}

// copyValue keeps a default in the shared schema from being changed through an
// object that got it.
func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, e := range v {
			c[k] = copyValue(e)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = copyValue(e)
		}
		return c
	}
	return v
}
