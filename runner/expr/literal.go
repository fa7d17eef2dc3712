package expr

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Literals returns the texts that the expression holds, each once.
func (p *Program) Literals() []string {
	var out []string
	each(p.ast.NativeRep().Expr(), func(x ast.Expr) {
		if x.Kind() != ast.LiteralKind {
			return
		}
		if s, ok := x.AsLiteral().(types.String); ok && !slices.Contains(out, string(s)) {
			out = append(out, string(s))
		}
	})
	return out
}

// ReadsField reports whether the expression reads a field of that name, of one of these
// variables or of anything in them.
func (p *Program) ReadsField(name string, of ...string) bool {
	found := false
	each(p.ast.NativeRep().Expr(), func(x ast.Expr) {
		object := fieldOf(x, name)
		if object == nil {
			return
		}
		root := origin(object)
		// Another name is that of an item of a loop.
		other := slices.ContainsFunc(p.env.vars, func(v Var) bool { return v.Name == root }) && !slices.Contains(of, root)
		found = found || !other
	})
	return found
}

// fieldOf returns the object whose field of that name x reads, nil if x is something else.
func fieldOf(x ast.Expr, name string) ast.Expr {
	if x.Kind() == ast.SelectKind && x.AsSelect().FieldName() == name {
		return x.AsSelect().Operand()
	}
	if x.Kind() == ast.CallKind && len(x.AsCall().Args()) == 2 && slices.Contains([]string{operators.Index, operators.OptIndex, optSelect}, x.AsCall().FunctionName()) {
		if key := x.AsCall().Args()[1]; key.Kind() == ast.LiteralKind && key.AsLiteral() == types.String(name) {
			return x.AsCall().Args()[0]
		}
	}
	return nil
}

// origin is the variable that an object is read from, "" for another object.
func origin(x ast.Expr) string {
	switch x.Kind() {
	case ast.IdentKind:
		return x.AsIdent()
	case ast.SelectKind:
		return origin(x.AsSelect().Operand())
	case ast.CallKind:
		c := x.AsCall()
		if c.IsMemberFunction() {
			return origin(c.Target())
		}
		if len(c.Args()) > 0 {
			return origin(c.Args()[0])
		}
	case ast.ComprehensionKind:
		return origin(x.AsComprehension().IterRange())
	}
	return ""
}

// each calls f with x and everything in it.
func each(x ast.Expr, f func(ast.Expr)) {
	f(x)
	for _, c := range children(x) {
		each(c, f)
	}
}
