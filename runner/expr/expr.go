// Package expr compiles and evaluates CEL; it is the only user of cel-go.
//
// An Env declares typed variables; object types may come from a JSON Schema, so that a
// field that does not exist is an error of the author and not of the run. Expressions have
// no I/O and no randomness: the same inputs give the same value.
package expr

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
)

// Limits that hold for every expression.
const (
	// CostLimit bounds one evaluation; 100,000 is about 10 ms.
	CostLimit = 100_000
	// sourceLimit bounds an expression's text in code points.
	sourceLimit = 16_384
	// nestingLimit bounds the parser's recursion.
	nestingLimit = 100
)

// Var declares a variable.
type Var struct {
	Name string
	Type Type
}

// Env is a set of variables for which expressions are compiled. It is made once and used
// by many goroutines. The costly part is built at the first compilation, so an unused Env
// costs nothing.
type Env struct {
	vars    []Var
	objects map[string]*Object
	build   func() (*cel.Env, error)
}

// NewEnv declares variables. Two object types of one name must be the same one.
func NewEnv(vars ...Var) (*Env, error) {
	e := &Env{vars: vars, objects: map[string]*Object{}}
	seen := map[string]bool{}
	for _, v := range vars {
		if seen[v.Name] {
			return nil, fmt.Errorf("variable %q is declared twice", v.Name)
		}
		seen[v.Name] = true
		if err := collect(e.objects, v.Type); err != nil {
			return nil, fmt.Errorf("variable %q: %w", v.Name, err)
		}
	}
	e.build = sync.OnceValues(e.extend)
	return e, nil
}

// base is the environment every other one extends: it holds the functions,
// whose checking costs ten times as much as a handful of variables.
var base = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.OptionalTypes(),
		cel.EnableIdentifierEscapeSyntax(),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(sourceLimit),
		cel.ParserRecursionLimit(nestingLimit),
		ext.Strings(), ext.Sets(), ext.Lists(), ext.TwoVarComprehensions(),
		secretFunction(), underFunction(), globFunction(), passedFunction(), showedFunction(),
	)
})

func (e *Env) extend() (*cel.Env, error) {
	b, err := base()
	if err != nil {
		return nil, fmt.Errorf("build the CEL environment: %w", err)
	}
	opts := []cel.EnvOption{cel.CustomTypeProvider(&provider{b.CELTypeProvider(), e.objects})}
	for _, v := range e.vars {
		opts = append(opts, cel.Variable(v.Name, v.Type.cel))
	}
	c, err := b.Extend(opts...)
	if err != nil {
		return nil, fmt.Errorf("build the CEL environment: %w", err)
	}
	return c, nil
}

// Bool compiles a condition.
func (e *Env) Bool(src string) (*Program, error) { return e.parseAndCompile(src, (*Source).Bool) }

// String compiles an expression of type string.
func (e *Env) String(src string) (*Program, error) { return e.parseAndCompile(src, (*Source).Text) }

// Any compiles an expression of any type.
func (e *Env) Any(src string) (*Program, error) {
	return e.parseAndCompile(src, func(s *Source, e *Env) (*Program, error) { return e.compile(s, nil, "") })
}

func (e *Env) parseAndCompile(src string, compile func(*Source, *Env) (*Program, error)) (*Program, error) {
	s, err := Parse(src)
	if err != nil {
		return nil, err
	}
	return compile(s, e)
}

func (e *Env) compile(s *Source, want *types.Type, noun string) (*Program, error) {
	c, err := e.build()
	if err != nil {
		return nil, err
	}
	checked, iss := c.Check(s.parsed)
	if iss.Err() != nil {
		return nil, e.problem(s.parsed.NativeRep(), iss)
	}
	out := checked.OutputType()
	if want != nil && !out.IsExactType(want) && out.Kind() != types.DynKind {
		message := fmt.Sprintf("%s must be of type %s, this is %s", noun, want, typeName(out))
		return nil, &Error{Line: 1, Col: 1, Message: message, Suggestion: hint(message)}
	}
	if err := e.checkEnums(checked.NativeRep()); err != nil {
		return nil, err
	}
	p := &Program{env: e, cel: c, ast: checked, want: want, out: e.outcome(checked.NativeRep(), out)}
	if err := p.bound(); err != nil {
		return nil, err
	}
	return p, nil
}

// Vars returns the declared variables.
func (e *Env) Vars() []Var { return slices.Clone(e.vars) }

// objectOf returns the object type of a CEL type, or nil.
func (e *Env) objectOf(t *types.Type) *Object {
	if t == nil || t.Kind() != types.StructKind {
		return nil
	}
	return e.objects[t.TypeName()]
}

// typeOf follows idents and selects through the declared types, without a
// checked tree: it explains errors.
func (e *Env) typeOf(x ast.Expr) (Type, bool) {
	switch x.Kind() {
	case ast.IdentKind:
		for _, v := range e.vars {
			if v.Name == x.AsIdent() {
				return v.Type, true
			}
		}
	case ast.SelectKind:
		t, ok := e.typeOf(x.AsSelect().Operand())
		if !ok || t.object == nil {
			return Type{}, false
		}
		f, ok := t.object.fields[x.AsSelect().FieldName()]
		return f.Type, ok
	}
	return Type{}, false
}

func (e *Env) names() []string {
	var names []string
	for _, v := range e.vars {
		names = append(names, v.Name)
	}
	return names
}

func (e *Env) fieldNames() []string {
	names := map[string]bool{}
	for _, o := range e.objects {
		for f := range o.fields {
			names[f] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
