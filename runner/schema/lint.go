package schema

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// keyword checks the value of a keyword of JSON Schema 2020-12. Words that are not listed
// are annotations and are not checked.
func (l *linter) keyword(word string, value any, place []string, depth int) {
	switch word {
	case "type":
		l.types(value, place)
	case "required":
		l.names(value, place)
	case "enum":
		l.list(value, place)
	case "pattern":
		l.pattern(value, place)
	case "$ref":
		l.reference(value, place)
	case "$anchor":
		l.anchor(value, place)
	case "$dynamicRef", "$recursiveRef", "$dynamicAnchor":
		l.wrong(place, "only references by place (#/...) and by $anchor (#name) are supported")
	case "$id":
		l.identity(value, place)
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		l.count(value, place)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		l.number(value, place)
	case "title", "description", "format":
		l.text(value, place)
	case "uniqueItems":
		l.truth(value, place)
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		l.schemas(value, place, depth)
	case "items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames", "contains", "not", "if", "then", "else":
		l.schema(value, place, depth+1)
	case "allOf", "anyOf", "oneOf", "prefixItems":
		l.choice(value, place, depth)
	}
}

var typeNames = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// linter finds what is wrong with a schema itself.
type linter struct {
	found []Mistake
	// anchors are the names that schemas have given themselves.
	anchors map[string]bool
}

func lint(root any) []Mistake {
	l := &linter{anchors: map[string]bool{}}
	l.schema(root, nil, 0)
	if len(l.found) == 0 {
		return refs(root)
	}
	return l.found
}

func (l *linter) wrong(place []string, format string, args ...any) {
	if len(l.found) < most {
		l.found = append(l.found, Mistake{At: place, Message: fmt.Sprintf(format, args...)})
	}
}

func (l *linter) schema(value any, place []string, depth int) {
	if depth > maxDepth {
		l.wrong(place, "nested deeper than %d", maxDepth)
		return
	}
	object, ok := value.(map[string]any)
	if !ok {
		if _, ok := value.(bool); !ok {
			l.wrong(place, "want a schema, got %s", show(value))
		}
		return
	}
	for _, keyword := range slices.Sorted(maps.Keys(object)) {
		l.keyword(keyword, object[keyword], at(place, keyword), depth)
	}
}

func (l *linter) schemas(value any, place []string, depth int) {
	object, ok := value.(map[string]any)
	if !ok {
		l.wrong(place, "want an object of schemas, got %s", show(value))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		l.schema(object[name], at(place, name), depth+1)
	}
}

func (l *linter) choice(value any, place []string, depth int) {
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		l.wrong(place, "want a list of schemas, got %s", show(value))
		return
	}
	for i, s := range list {
		l.schema(s, at(place, index(i)), depth+1)
	}
}

func (l *linter) types(value any, place []string) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, t := range list {
		if name, ok := t.(string); !ok || !slices.Contains(typeNames, name) {
			l.wrong(place, "want one of %s, got %s", strings.Join(typeNames, ", "), show(t))
		}
	}
}

func (l *linter) names(value any, place []string) {
	list, ok := value.([]any)
	if !ok {
		l.wrong(place, "want a list of names, got %s", show(value))
		return
	}
	for i, name := range list {
		if _, ok := name.(string); !ok {
			l.wrong(at(place, index(i)), "want a name, got %s", show(name))
		}
	}
}

func (l *linter) list(value any, place []string) {
	if list, ok := value.([]any); !ok || len(list) == 0 {
		l.wrong(place, "want a list of values, got %s", show(value))
	}
}

func (l *linter) pattern(value any, place []string) {
	text, ok := value.(string)
	if !ok {
		l.wrong(place, "want a regular expression, got %s", show(value))
		return
	}
	if _, err := regexp.Compile(text); err != nil {
		l.wrong(place, "no regular expression (RE2): %v", err)
	}
}

// identity lets only the whole document have a name: inside, it would change
// what references mean.
func (l *linter) identity(value any, place []string) {
	if _, ok := value.(string); !ok || len(place) > 1 {
		l.wrong(place, "only the whole schema may have an $id")
	}
}

func (l *linter) reference(value any, place []string) {
	text, _ := value.(string)
	inside, ok := strings.CutPrefix(text, "#")
	if !ok || inside != "" && !strings.HasPrefix(inside, "/") && !isAnchor(inside) || strings.Contains(inside, "%") {
		l.wrong(place, "want a reference inside of the schema (#/... or #name), got %s: no other document is read", show(value))
	}
}

func (l *linter) count(value any, place []string) {
	if n, ok := value.(float64); !ok || n < 0 || n != float64(int64(n)) {
		l.wrong(place, "want a whole number of at least 0, got %s", show(value))
	}
}

func (l *linter) number(value any, place []string) {
	if _, ok := value.(float64); !ok {
		l.wrong(place, "want a number, got %s", show(value))
	}
}

func (l *linter) text(value any, place []string) {
	if _, ok := value.(string); !ok {
		l.wrong(place, "want a text, got %s", show(value))
	}
}

func (l *linter) truth(value any, place []string) {
	if _, ok := value.(bool); !ok {
		l.wrong(place, "want true or false, got %s", show(value))
	}
}
