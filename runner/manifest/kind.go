package manifest

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// typed checks the type of a value against that of the schema.
func (s *shape) typed(path string, schema map[string]any, v any) bool {
	want, _ := schema["type"].(string)
	switch {
	case schema["x-kubernetes-int-or-string"] == true:
		want = "quantity"
	case want == "" && schema["properties"] != nil:
		want = "alternative"
	}
	if want == "" || is(want, v) {
		return true
	}
	s.add(s.wrongType(path, schema, want, v))
	return false
}

func is(want string, v any) bool {
	switch v := v.(type) {
	case string:
		return want == "string" || want == "quantity" || want == "alternative"
	case bool:
		return want == "boolean"
	case int64:
		return want == "integer" || want == "number" || want == "quantity"
	case float64:
		return want == "number" || want == "integer" && v == math.Trunc(v) && math.Abs(v) < 1<<53
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object" || want == "alternative"
	}
	return false
}

// wrongType reports the expected type, with a suggestion for the usual mistakes.
func (s *shape) wrongType(path string, schema map[string]any, want string, v any) Finding {
	wanted := map[string]string{
		"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
		"array": "a list", "object": "a mapping", "quantity": "a quantity such as 512Mi or 500m", "alternative": "a text or a mapping",
	}[want]
	if enum := texts(sequence(schema["enum"])); len(enum) > 0 {
		wanted = "one of " + strings.Join(enum, ", ")
	}
	f := s.doc.Errorf(path, "wants %s, not %s", wanted, describe(v))
	properties := mapping(schema["properties"])
	_, reference := properties["valueFrom"]
	_, place := properties["secretKeyRef"]
	switch {
	case want == "object" && scalar(v) && (reference || place):
		f.Suggestion = cmp.Or(map[bool]string{true: "write {valueFrom: {env: NAME}}"}[reference], "write {env: NAME}")
		f.Message = "a literal value is refused: secrets are references"
		s.doc.hide(v)
	case want == "object" && properties["name"] != nil && isText(v):
		f.Suggestion = fmt.Sprintf("write {name: %s}", short(v.(string)))
	case schema["pattern"] == durationPattern:
		f.Message = "wants a duration such as 30s, 15m or 1h30m, not " + describe(v)
	case want == "boolean" && (v == "true" || v == "false"), want == "integer" && isNumber(v):
		f.Suggestion = fmt.Sprintf("write %v, without quotes", v)
	case want == "string" || want == "quantity" || want == "alternative":
		s.quote(&f, path, wanted, v)
	case want == "array" && scalar(v):
		f.Suggestion = fmt.Sprintf("write [%v]", short(fmt.Sprint(v)))
	}
	return f
}

func isNumber(v any) bool {
	text, _ := v.(string)
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

// quote explains a plain word or number where a text is wanted.
func (s *shape) quote(f *Finding, path, wanted string, v any) {
	if !scalar(v) {
		return
	}
	at := s.doc.text.find(path)
	if !at.exact {
		return
	}
	word := deref(at.value).Value
	if b, ok := v.(bool); ok && boolWord(word) {
		f.Message = fmt.Sprintf("wants %s, but plain %s is %t in YAML 1.1: quote it", wanted, word, b)
	} else {
		f.Message += ": quote it"
	}
	f.Suggestion = fmt.Sprintf("write %q", word)
}
