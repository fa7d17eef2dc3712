package expr

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Type is the type of a variable or of a field.
type Type struct {
	cel    *types.Type
	object *Object
	// elem is the type of a list's elements or of a map's values.
	elem *Type
	// enum lists the only values a string can have.
	enum []string
	// span are the only values an integer can have; nil is any.
	span *span
	// total reports that every key of a map has a value.
	total bool
	// max bounds the length of a string, list or map; 0 is unknown.
	max uint64
}

// The plain types.
var (
	Bool      = Type{cel: types.BoolType}
	Int       = Type{cel: types.IntType}
	Double    = Type{cel: types.DoubleType}
	String    = Type{cel: types.StringType}
	Timestamp = Type{cel: types.TimestampType}
	Duration  = Type{cel: types.DurationType}
	// Dyn is a value whose type is known only when it is there.
	Dyn = Type{cel: types.DynType}
)

// List is a list of one type.
func List(of Type) Type { return Type{cel: types.NewListType(of.cel), elem: &of} }

// Map is a map from strings to one type.
func Map(of Type) Type { return Type{cel: types.NewMapType(types.StringType, of.cel), elem: &of} }

// Enum is a string that has one of the given values. Literals compared with it
// are checked when an expression is compiled.
func Enum(values ...string) Type { return Type{cel: types.StringType, enum: values} }

// Range is an integer from least to most.
func Range(least, most int64) Type {
	return Type{cel: types.IntType, span: &span{least: least, most: most}}
}

// Numbers is an integer that has one of the given values.
func Numbers(values ...int64) Type {
	return Type{cel: types.IntType, span: &span{least: slices.Min(values), most: slices.Max(values), only: values}}
}

// Max bounds the length of a string, list or map, for the static bound of cost.
// An evaluation with longer values must be counted (Input.Large).
func (t Type) Max(n uint64) Type {
	t.max = n
	return t
}

// Name returns the type as CEL writes it.
func (t Type) Name() string { return typeName(t.cel) }

// Fields returns the names of an object type's fields; nil for other types.
func (t Type) Fields() []string {
	if t.object == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(t.object.fields))
}

// Field returns the type of a field of an object type.
func (t Type) Field(name string) (Type, bool) {
	if t.object == nil {
		return Type{}, false
	}
	f, ok := t.object.fields[name]
	return f.Type, ok
}

// Names adds the names that members of a value can have, as JSON writes them, at
// any depth; false when it can hold others.
func (t Type) Names(into map[string]bool) bool {
	switch {
	case t.object != nil:
		all := true
		for _, f := range t.object.fields {
			known := into[f.key]
			into[f.key] = true
			all = (known || f.Type.Names(into)) && all
		}
		return all
	case t.elem != nil:
		return t.cel.Kind() == types.ListKind && t.elem.Names(into)
	}
	return t.cel != nil && t.cel.Kind() != types.DynKind && t.cel.Kind() != types.MapKind
}

// Plain describes a type that holds no object, so that two of one description
// are the same to every expression; false for any other type.
func (t Type) Plain() (description string, ok bool) {
	if t.object != nil {
		return "", false
	}
	description = fmt.Sprintf("%s %d %q", typeName(t.cel), t.max, t.enum)
	if t.span != nil {
		description += fmt.Sprint(" of ", *t.span)
	}
	if t.elem == nil {
		return description, t.cel == nil || t.cel.Kind() != types.StructKind
	}
	of, ok := t.elem.Plain()
	return description + " of " + of, ok
}

// Field is a field of an object type.
type Field struct {
	Name string
	Type Type
	// Optional reports that a value may lack the field.
	Optional bool
	// key is the name in JSON, if that is not a CEL identifier.
	key string
}

// Object is a type with named fields. Its values are map[string]any; a field that is not
// in the map is absent, and has() is false for it.
type Object struct {
	name   string
	fields map[string]Field
}

// NewObject declares an object type. The name is for error messages and must denote the
// same fields in the whole Env.
func NewObject(name string, fields ...Field) Type {
	o := &Object{name: name, fields: make(map[string]Field, len(fields))}
	for _, f := range fields {
		if f.key == "" {
			f.key = f.Name
		}
		o.fields[f.Name] = f
	}
	return Type{cel: types.NewObjectType(name), object: o}
}

// With returns the object type under another name with fields added or replaced.
func (t Type) With(name string, fields ...Field) Type {
	all := make([]Field, 0, len(fields)+8)
	if t.object != nil {
		for _, f := range t.object.fields {
			all = append(all, f)
		}
	}
	return NewObject(name, append(all, fields...)...)
}

// collect gathers the object types reachable from t.
func collect(into map[string]*Object, t Type) error {
	if t.elem != nil {
		return collect(into, *t.elem)
	}
	if t.object == nil {
		return nil
	}
	if have, ok := into[t.object.name]; ok {
		if have != t.object {
			return fmt.Errorf("object type %q stands for two types", t.object.name)
		}
		return nil
	}
	into[t.object.name] = t.object
	for _, f := range t.object.fields {
		if err := collect(into, f.Type); err != nil {
			return err
		}
	}
	return nil
}

// provider gives the checker our object types. At run time their values are plain maps, so
// it has no accessors: cel-go then qualifies by key.
type provider struct {
	types.Provider
	objects map[string]*Object
}

// FindStructType reports whether a type of that name exists.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := p.objects[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames lists the fields of a type.
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	if o, ok := p.objects[name]; ok {
		return slices.Sorted(maps.Keys(o.fields)), true
	}
	return p.Provider.FindStructFieldNames(name)
}

// FindStructFieldType returns the type of a field.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	o, ok := p.objects[name]
	if !ok {
		return p.Provider.FindStructFieldType(name, field)
	}
	f, ok := o.fields[field]
	if !ok {
		return nil, false
	}
	return &types.FieldType{Type: f.Type.cel}, true
}

// NewValue refuses to construct objects in an expression: a rule only reads values.
func (p *provider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := p.objects[name]; ok {
		return types.NewErr("objects of type %s cannot be made in an expression", name)
	}
	return p.Provider.NewValue(name, fields)
}

func typeName(t *types.Type) string {
	if t == nil {
		return "dyn"
	}
	return t.String()
}
