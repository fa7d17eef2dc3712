package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// checkEnums refuses string literals that an enum can never equal: a rule that
// waits for a value that does not exist never fires, and nobody notices.
func (e *Env) checkEnums(tree *ast.AST) error {
	var found *Error
	elements := e.elements(tree)
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if found != nil || x.Kind() != ast.CallKind || len(x.AsCall().Args()) != 2 {
			return
		}
		a, b := x.AsCall().Args()[0], x.AsCall().Args()[1]
		switch x.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals:
			if found = e.enumMismatch(tree, elements, a, b); found == nil {
				found = e.enumMismatch(tree, elements, b, a)
			}
		case operators.In:
			if b.Kind() != ast.ListKind {
				// 'x' in call.args.kinds: the elements of a list are an enum.
				if elem := e.fieldOf(tree, b).elem; elem != nil {
					found = e.literalOutside(tree, *elem, pathOf(b), a)
				}
				return
			}
			for _, lit := range b.AsList().Elements() {
				if found == nil {
					found = e.enumMismatch(tree, elements, a, lit)
				}
			}
		}
	}))
	if found != nil {
		return found
	}
	return nil
}

// element is what a name in a loop stands for.
type element struct {
	of   Type
	path string
}

// elements are the names that loops over a list of an enum give its elements. A
// name that another loop gives to something else is left out.
func (e *Env) elements(tree *ast.AST) map[string]element {
	found, other := map[string]element{}, map[string]bool{}
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.ComprehensionKind {
			return
		}
		c := x.AsComprehension()
		name := c.IterVar()
		if c.HasIterVar2() {
			other[name], name = true, c.IterVar2()
		}
		list := e.fieldOf(tree, c.IterRange())
		of := list.elem
		if of == nil || !c.HasIterVar2() && list.cel.Kind() != types.ListKind || // a loop over a map takes its keys
			len(of.enum) == 0 || found[name].path != "" && found[name].path != pathOf(c.IterRange()) {
			other[name] = true
			return
		}
		found[name] = element{*of, pathOf(c.IterRange())}
	}))
	for name := range other {
		delete(found, name)
	}
	return found
}

func (e *Env) enumMismatch(tree *ast.AST, elements map[string]element, field, lit ast.Expr) *Error {
	if field.Kind() == ast.IdentKind {
		if of, ok := elements[field.AsIdent()]; ok {
			return e.literalOutside(tree, of.of, of.path, lit)
		}
	}
	if field.Kind() == ast.CallKind && field.AsCall().FunctionName() == operators.Index {
		list := field.AsCall().Args()[0]
		if elem := e.fieldOf(tree, list).elem; elem != nil {
			return e.literalOutside(tree, *elem, pathOf(list), lit)
		}
	}
	return e.literalOutside(tree, e.fieldOf(tree, field), pathOf(field), lit)
}

func (e *Env) literalOutside(tree *ast.AST, t Type, path string, lit ast.Expr) *Error {
	if len(t.enum) == 0 || lit.Kind() != ast.LiteralKind {
		return nil
	}
	s, ok := lit.AsLiteral().(types.String)
	if !ok || slices.Contains(t.enum, string(s)) {
		return nil
	}
	loc := tree.SourceInfo().GetStartLocation(lit.ID())
	err := &Error{Line: loc.Line(), Col: loc.Column() + 1, Message: fmt.Sprintf("%s is never %q", path, string(s))}
	if err.Suggestion = Nearest(string(s), t.enum); err.Suggestion == "" {
		err.Suggestion = "allowed are " + strings.Join(t.enum, ", ")
	}
	return err
}

// fieldOf returns the declared type of a variable or field, whatever the
// expression in front of the field is.
func (e *Env) fieldOf(tree *ast.AST, x ast.Expr) Type {
	if x.Kind() == ast.SelectKind && !x.AsSelect().IsTestOnly() {
		if o := e.objectOf(tree.GetType(x.AsSelect().Operand().ID())); o != nil {
			return o.fields[x.AsSelect().FieldName()].Type
		}
	}
	t, _ := e.typeOf(x)
	return t
}
