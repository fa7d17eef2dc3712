package expr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a schema and of a value: both come from outside.
const (
	schemaLimit = 1 << 20
	schemaDepth = 16
	fieldLimit  = 1000
)

// schema is the part of JSON Schema 2020-12 that decides types.
type schema struct {
	Ref                  string            `json:"$ref"`
	Type                 json.RawMessage   `json:"type"`
	Properties           map[string]schema `json:"properties"`
	Required             json.RawMessage   `json:"required"`
	AdditionalProperties json.RawMessage   `json:"additionalProperties"`
	Items                json.RawMessage   `json:"items"`
	PrefixItems          []json.RawMessage `json:"prefixItems"`
	Enum                 []any             `json:"enum"`
	Const                json.RawMessage   `json:"const"`
	OneOf                []json.RawMessage `json:"oneOf"`
	AnyOf                []json.RawMessage `json:"anyOf"`
	AllOf                []json.RawMessage `json:"allOf"`
	Minimum              *float64          `json:"minimum"`
	Maximum              *float64          `json:"maximum"`
	MaxLength            *float64          `json:"maxLength"`
	MaxItems             *float64          `json:"maxItems"`
	MaxProperties        *float64          `json:"maxProperties"`
	Defs                 map[string]schema `json:"$defs"`
	Definitions          map[string]schema `json:"definitions"`
	// any is true for a schema written as a boolean.
	any bool
}

// UnmarshalJSON reads a schema; true and false are schemas too.
func (s *schema) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] != '{' {
		s.any = true
		var v bool
		return json.Unmarshal(b, &v)
	}
	type plain schema
	return json.Unmarshal(b, (*plain)(s))
}

// FromSchema turns a JSON Schema into a type: an object with properties becomes
// an object type of that name, one without a map, an enum of strings an Enum,
// alternatives and everything it does not know Dyn.
func FromSchema(name string, raw json.RawMessage) (Type, error) {
	if len(raw) > schemaLimit {
		return Type{}, fmt.Errorf("schema of %s is larger than %d bytes", name, schemaLimit)
	}
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return Type{}, fmt.Errorf("schema of %s: %w", name, err)
	}
	c := converter{root: &s}
	t := c.convert(name, &s, 0)
	if c.fields > fieldLimit {
		return Type{}, fmt.Errorf("schema of %s has more than %d fields", name, fieldLimit)
	}
	return t, nil
}

type converter struct {
	root   *schema
	fields int
}

func (c *converter) convert(name string, s *schema, depth int) Type {
	s = c.resolve(s)
	if s == nil || s.any || depth > schemaDepth || c.fields > fieldLimit ||
		len(s.OneOf) > 0 || len(s.AnyOf) > 0 || len(s.AllOf) > 0 {
		return Dyn
	}
	kind, nullable := s.kind()
	if nullable {
		return Dyn
	}
	switch kind {
	case "string":
		return s.text()
	case "integer":
		return s.integer()
	case "number":
		return Double
	case "boolean":
		return Bool
	case "array":
		return c.array(name, s, depth)
	case "object":
		return c.object(name, s, depth)
	}
	return Dyn
}

// kind returns the one type of a schema, "" when there are several or none.
func (s *schema) kind() (kind string, nullable bool) {
	if len(s.Type) == 0 {
		if len(s.Properties) > 0 {
			return "object", false
		}
		return "", false
	}
	if json.Unmarshal(s.Type, &kind) == nil {
		return kind, false
	}
	var kinds []string
	if json.Unmarshal(s.Type, &kinds) != nil || len(kinds) != 1 {
		return "", true
	}
	return kinds[0], false
}

func (s *schema) text() Type {
	t := String
	if s.MaxLength != nil && *s.MaxLength > 0 && *s.MaxLength < math.MaxInt32 {
		t.max = uint64(*s.MaxLength)
	}
	for _, v := range s.values() {
		text, ok := v.(string)
		if !ok {
			t.enum = nil
			return t
		}
		t.enum = append(t.enum, text)
	}
	return t
}

// values are the only ones the schema admits, where it lists them.
func (s *schema) values() []any {
	if len(s.Const) == 0 {
		return s.Enum
	}
	var v any
	if json.Unmarshal(s.Const, &v) != nil {
		return nil
	}
	return []any{v}
}

func (s *schema) integer() Type {
	var only []int64
	for _, v := range s.values() {
		f, ok := v.(float64)
		if !ok || !exact(f) {
			return Int
		}
		only = append(only, int64(f))
	}
	if len(only) > 0 {
		return Numbers(only...)
	}
	least, most := int64(math.MinInt64), int64(math.MaxInt64)
	if s.Minimum != nil && exact(*s.Minimum) {
		least = int64(*s.Minimum)
	}
	if s.Maximum != nil && exact(*s.Maximum) {
		most = int64(*s.Maximum)
	}
	if least > most || least == math.MinInt64 && most == math.MaxInt64 {
		return Int
	}
	return Range(least, most)
}

// exact reports whether a number is an integer that is written without loss.
func exact(f float64) bool { return f == math.Trunc(f) && math.Abs(f) < 1<<53 }

func (c *converter) array(name string, s *schema, depth int) Type {
	elem := Dyn
	var items schema
	if len(s.PrefixItems) == 0 && len(s.Items) > 0 && json.Unmarshal(s.Items, &items) == nil {
		elem = c.convert(name+".item", &items, depth+1)
	}
	t := List(elem)
	if s.MaxItems != nil && *s.MaxItems > 0 && *s.MaxItems < math.MaxInt32 {
		t.max = uint64(*s.MaxItems)
	}
	return t
}

func (c *converter) object(name string, s *schema, depth int) Type {
	if len(s.Properties) == 0 {
		var rest schema
		elem := Dyn
		if len(s.AdditionalProperties) > 0 && json.Unmarshal(s.AdditionalProperties, &rest) == nil {
			elem = c.convert(name+".value", &rest, depth+1)
		}
		t := Map(elem)
		if s.MaxProperties != nil && *s.MaxProperties > 0 && *s.MaxProperties < math.MaxInt32 {
			t.max = uint64(*s.MaxProperties)
		}
		return t
	}
	c.fields += len(s.Properties)
	fields := make([]Field, 0, len(s.Properties))
	var required []string
	_ = json.Unmarshal(s.Required, &required) // an older draft writes a boolean here
	for key, sub := range s.Properties {
		f := Identifier(key)
		fields = append(fields, Field{Name: f, Type: c.convert(name+"."+f, &sub, depth+1), Optional: !slices.Contains(required, key), key: key})
	}
	return NewObject(name, fields...)
}

// resolve follows references inside the document. Loops end in Dyn.
func (c *converter) resolve(s *schema) *schema {
	for range schemaDepth {
		if s == nil || s.Ref == "" {
			return s
		}
		defs, key := map[string]schema(nil), ""
		if k, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
			defs, key = c.root.Defs, k
		} else if k, ok := strings.CutPrefix(s.Ref, "#/definitions/"); ok {
			defs, key = c.root.Definitions, k
		}
		next, ok := defs[key]
		if !ok {
			return nil
		}
		s = &next
	}
	return nil
}

var (
	reserved = []string{
		"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
		"package", "namespace", "return", "var", "void", "while",
	}
	escapes = strings.NewReplacer("__", "__underscores__", ".", "__dot__", "-", "__dash__", "/", "__slash__")
)

// isIdentifier reports whether CEL can read a name: letters, digits and _, not beginning
// with a digit.
func isIdentifier(name string) bool {
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
	}
	return name != "" && (name[0] < '0' || name[0] > '9') && !strings.ContainsFunc(name, strange)
}

// Identifier writes a JSON name as a CEL identifier by Kubernetes' rules:
// "max-size" is max__dash__size, "in" is __in__.
func Identifier(name string) string {
	if slices.Contains(reserved, name) {
		return "__" + name + "__"
	}
	if isIdentifier(name) && !strings.Contains(name, "__") {
		return name
	}
	escaped := escapes.Replace(name)
	if isIdentifier(escaped) {
		return escaped
	}
	return name
}

// Decode turns JSON into the Go value that an expression reads as this type: numbers
// become int64 or float64 by their type, not by their notation.
func (t Type) Decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("text behind the value")
	}
	return t.shape(v), nil
}

func (t Type) shape(v any) any {
	switch v := v.(type) {
	case json.Number:
		return t.number(v)
	case []any:
		elem := Dyn
		if t.elem != nil {
			elem = *t.elem
		}
		for i := range v {
			v[i] = elem.shape(v[i])
		}
		return v
	case map[string]any:
		if t.object == nil {
			elem := Dyn
			if t.elem != nil {
				elem = *t.elem
			}
			for k := range v {
				v[k] = elem.shape(v[k])
			}
			return v
		}
		return t.object.shape(v)
	}
	return v
}

// shape renames the fields that are not identifiers. A field that is not in the schema is
// kept under its own name, though a rule cannot read it.
func (o *Object) shape(v map[string]any) map[string]any {
	out := make(map[string]any, len(v))
	for k, x := range v {
		name := Identifier(k)
		f, ok := o.fields[name]
		if !ok || f.key != k {
			out[k] = Dyn.shape(x)
			continue
		}
		out[name] = f.Type.shape(x)
	}
	return out
}

func (t Type) number(n json.Number) any {
	f, err := n.Float64()
	if t.cel == Double.cel {
		if err != nil {
			return string(n)
		}
		return f
	}
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i
	}
	// 9.0 and 9e0 are integers too, as long as they are exact.
	if err == nil && exact(f) {
		return int64(f)
	}
	if err != nil {
		return string(n)
	}
	return f
}

// Infer returns the type of a JSON value, for constants that an author wrote:
// objects get object types, lists of one type are typed.
func Infer(name string, raw json.RawMessage) (Type, error) {
	v, err := Dyn.Decode(raw)
	if err != nil {
		return Type{}, fmt.Errorf("%s: %w", name, err)
	}
	return infer(name, v), nil
}

func infer(name string, v any) Type {
	switch v := v.(type) {
	case string:
		return String
	case bool:
		return Bool
	case int64:
		return Int
	case float64:
		return Double
	case []any:
		return inferList(name, v)
	case map[string]any:
		fields := make([]Field, 0, len(v))
		for k, x := range v {
			f := Identifier(k)
			fields = append(fields, Field{Name: f, Type: infer(name+"."+f, x), key: k})
		}
		return NewObject(name, fields...)
	}
	return Dyn
}

func inferList(name string, v []any) Type {
	if len(v) == 0 {
		return List(Dyn)
	}
	first := infer(name+".item", v[0])
	for _, x := range v[1:] {
		if t := infer(name+".item", x); t.object != nil || t.elem != nil || t.cel != first.cel {
			return List(Dyn)
		}
	}
	if first.object != nil || first.elem != nil {
		return List(Dyn)
	}
	t := List(first)
	t.max = uint64(len(v))
	return t
}
