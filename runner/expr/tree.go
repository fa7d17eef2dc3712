package expr

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// optSelect is the function behind a.?b.
const optSelect = "_?._"

// steps returns a.b.c, a["b"].c and a.?b as a path, nil for anything else.
func steps(x ast.Expr) []string {
	switch x.Kind() {
	case ast.IdentKind:
		return []string{x.AsIdent()}
	case ast.SelectKind:
		if p := steps(x.AsSelect().Operand()); p != nil {
			return append(p, x.AsSelect().FieldName())
		}
	case ast.CallKind:
		c := x.AsCall()
		if (c.FunctionName() == operators.Index || c.FunctionName() == optSelect || c.FunctionName() == operators.OptIndex) && len(c.Args()) == 2 {
			if c.Args()[1].Kind() != ast.LiteralKind {
				return nil
			}
			key, ok := c.Args()[1].AsLiteral().(types.String)
			if p := steps(c.Args()[0]); ok && p != nil {
				return append(p, string(key))
			}
		}
	}
	return nil
}

// reads reports whether x reads path, something inside it, or something it is inside of.
func reads(x ast.Expr, path []string) bool {
	found := false
	visit(x, func(p []string) {
		n := min(len(p), len(path))
		if slices.Equal(p[:n], path[:n]) {
			found = true
		}
	})
	return found
}

// fields lists the steps directly behind path.
func fields(x ast.Expr, path []string) []string {
	var out []string
	visit(x, func(p []string) {
		if len(p) > len(path) && slices.Equal(p[:len(path)], path) && !slices.Contains(out, p[len(path)]) {
			out = append(out, p[len(path)])
		}
	})
	slices.Sort(out)
	return out
}

// visit calls f with the longest path of each chain of selects.
func visit(x ast.Expr, f func(path []string)) {
	if p := steps(x); p != nil {
		f(p)
		return
	}
	for _, c := range children(x) {
		visit(c, f)
	}
}

func children(x ast.Expr) []ast.Expr {
	switch x.Kind() {
	case ast.SelectKind:
		return []ast.Expr{x.AsSelect().Operand()}
	case ast.CallKind:
		c := x.AsCall()
		if c.IsMemberFunction() {
			return append([]ast.Expr{c.Target()}, c.Args()...)
		}
		return c.Args()
	case ast.ListKind:
		return x.AsList().Elements()
	case ast.MapKind:
		var out []ast.Expr
		for _, e := range x.AsMap().Entries() {
			out = append(out, e.AsMapEntry().Key(), e.AsMapEntry().Value())
		}
		return out
	case ast.StructKind:
		var out []ast.Expr
		for _, f := range x.AsStruct().Fields() {
			out = append(out, f.AsStructField().Value())
		}
		return out
	case ast.ComprehensionKind:
		c := x.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	}
	return nil
}

// needsInput reports whether x has no value without its variables. It may miss some such
// expressions, but never calls a constant one so.
func (e *Env) needsInput(x ast.Expr) bool {
	needs := e.needsInput
	switch x.Kind() {
	case ast.IdentKind:
		return slices.ContainsFunc(e.vars, func(v Var) bool { return v.Name == x.AsIdent() })
	case ast.ComprehensionKind:
		// The loop may never run, and its names are its own.
		return needs(x.AsComprehension().IterRange())
	case ast.CallKind:
		c := x.AsCall()
		switch c.FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr:
			return !slices.ContainsFunc(c.Args(), func(a ast.Expr) bool { return !needs(a) })
		case operators.Conditional:
			return needs(c.Args()[0])
		case operators.In:
			if list := c.Args()[1]; list.Kind() == ast.ListKind && list.AsList().Size() == 0 {
				return false // nothing is in an empty list
			}
		case "or", "orValue": // read the rest only if the first has no value
			return c.IsMemberFunction() && needs(c.Target())
		}
	}
	return slices.ContainsFunc(children(x), needs)
}

// guarded reports whether every read of path in x happens only where has(path) is true.
// CEL's && and || absorb an error on either side, so the order of the two does not matter.
func guarded(x ast.Expr, path []string, held bool) bool {
	if p := steps(x); len(p) >= len(path) && slices.Equal(p[:len(path)], path) {
		return held || len(p) == len(path) && isTest(x)
	}
	if x.Kind() != ast.CallKind {
		return allGuarded(children(x), path, held)
	}
	args := x.AsCall().Args()
	switch x.AsCall().FunctionName() {
	case operators.LogicalAnd:
		return bothGuarded(args, path, held, implies)
	case operators.LogicalOr:
		return bothGuarded(args, path, held, refutes)
	case operators.Conditional:
		return guarded(args[0], path, held) && guarded(args[1], path, held || implies(args[0], path)) &&
			guarded(args[2], path, held || refutes(args[0], path))
	}
	return allGuarded(children(x), path, held)
}

func isTest(x ast.Expr) bool {
	if x.Kind() == ast.SelectKind {
		return x.AsSelect().IsTestOnly()
	}
	return x.Kind() == ast.CallKind && x.AsCall().FunctionName() != operators.Index
}

func allGuarded(xs []ast.Expr, path []string, held bool) bool {
	for _, x := range xs {
		if !guarded(x, path, held) {
			return false
		}
	}
	return true
}

// bothGuarded checks the sides of && or ||: each side can guard the other.
func bothGuarded(args []ast.Expr, path []string, held bool, says func(ast.Expr, []string) bool) bool {
	for i, a := range args {
		by := held
		for j, b := range args {
			by = by || i != j && says(b, path)
		}
		if !guarded(a, path, by) {
			return false
		}
	}
	return true
}

// implies reports whether has(path) is true if x is true.
func implies(x ast.Expr, path []string) bool {
	if isTest(x) && x.Kind() == ast.SelectKind && slices.Equal(steps(x), path) {
		return true
	}
	if x.Kind() != ast.CallKind {
		return false
	}
	args := x.AsCall().Args()
	switch x.AsCall().FunctionName() {
	case operators.LogicalAnd:
		return slices.ContainsFunc(args, func(a ast.Expr) bool { return implies(a, path) })
	case operators.LogicalNot:
		return refutes(args[0], path)
	}
	return false
}

// refutes reports whether has(path) is true if x is false.
func refutes(x ast.Expr, path []string) bool {
	if x.Kind() != ast.CallKind {
		return false
	}
	args := x.AsCall().Args()
	switch x.AsCall().FunctionName() {
	case operators.LogicalOr:
		return slices.ContainsFunc(args, func(a ast.Expr) bool { return refutes(a, path) })
	case operators.LogicalNot:
		return implies(args[0], path)
	}
	return false
}
