package expr

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Spreads reports whether a condition that is true for one item of a list is true for
// every list with that item: it reads the list, a variable or a field of one, only as
// list.exists(...), joined by && and ||. Then one evaluation can cover many items.
func (p *Program) Spreads(list ...string) bool { return spreads(p.ast.NativeRep().Expr(), list) }

func spreads(x ast.Expr, list []string) bool {
	if !reads(x, list) {
		return true
	}
	switch x.Kind() {
	case ast.CallKind:
		c := x.AsCall()
		if f := c.FunctionName(); f != operators.LogicalAnd && f != operators.LogicalOr {
			return false
		}
		for _, a := range c.Args() {
			if !spreads(a, list) {
				return false
			}
		}
		return true
	case ast.ComprehensionKind:
		c := x.AsComprehension()
		return isExists(c) && isPath(c.IterRange(), list) && c.IterVar() != list[0] && !reads(c.LoopStep(), list)
	}
	return false
}

// isPath reports whether an expression is a variable, or a field of one.
func isPath(x ast.Expr, path []string) bool {
	last := len(path) - 1
	switch x.Kind() {
	case ast.IdentKind:
		return last == 0 && x.AsIdent() == path[0]
	case ast.SelectKind:
		s := x.AsSelect()
		return last > 0 && !s.IsTestOnly() && s.FieldName() == path[last] && isPath(s.Operand(), path[:last])
	}
	return false
}

// isExists reports whether a loop is the expansion of the macro exists: false at first,
// and true as soon as one item is.
func isExists(c ast.ComprehensionExpr) bool {
	if c.HasIterVar2() || c.AccuInit().Kind() != ast.LiteralKind || c.AccuInit().AsLiteral() != types.False {
		return false
	}
	step, result := c.LoopStep(), c.Result()
	return step.Kind() == ast.CallKind && step.AsCall().FunctionName() == operators.LogicalOr &&
		result.Kind() == ast.IdentKind && result.AsIdent() == c.AccuVar()
}
