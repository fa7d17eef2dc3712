package expr

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Spreads reports whether a condition that is true for one item of a list is true for
// every list with that item: it reads the variable only as list.exists(...), joined by &&
// and ||. Then one evaluation can cover many items.
func (p *Program) Spreads(list string) bool { return spreads(p.ast.NativeRep().Expr(), list) }

func spreads(x ast.Expr, list string) bool {
	if !reads(x, []string{list}) {
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
		return isExists(c) && c.IterRange().Kind() == ast.IdentKind && c.IterRange().AsIdent() == list && c.IterVar() != list &&
			!reads(c.LoopStep(), []string{list})
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
