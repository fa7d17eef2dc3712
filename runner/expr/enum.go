package expr

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// checkEnums refuses literals that a value can never equal: a rule that compares with such
// a value never applies, and the mistake would go unnoticed.
func (e *Env) checkEnums(tree *ast.AST) error {
	c := &enumCheck{env: e, tree: tree}
	c.elements = c.loops()
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if c.found == nil && x.Kind() == ast.CallKind {
			c.call(x.AsCall())
		}
	}))
	if c.found != nil {
		return c.found
	}
	return nil
}

// enumCheck looks at one expression.
type enumCheck struct {
	env  *Env
	tree *ast.AST
	// elements are the values of the names in loops.
	elements map[string]known
	// found is the first mistake.
	found *Error
}

// known is a value whose type is more specific than its CEL type, with its name.
type known struct {
	of   Type
	path string
}

func (c *enumCheck) call(x ast.CallExpr) {
	args := x.Args()
	if x.IsMemberFunction() {
		args = append([]ast.Expr{x.Target()}, args...)
	}
	if len(args) != 2 {
		c.literal(x.FunctionName(), args)
		return
	}
	a, b := args[0], args[1]
	switch x.FunctionName() {
	case operators.Equals, operators.NotEquals:
		c.equal(a, b)
		c.equal(b, a)
	case operators.In:
		if b.Kind() == ast.ListKind {
			for _, lit := range b.AsList().Elements() {
				c.equal(a, lit)
			}
		} else if elem := c.value(b); elem.of.elem != nil {
			// 'x' in call.args.kinds: the elements of a list are an enum.
			c.outside(known{*elem.of.elem, elem.path}, a)
		}
	case "sets.contains", "sets.intersects", "sets.equivalent":
		c.lists(a, b)
		c.lists(b, a)
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		c.ordered(x.FunctionName(), a, b)
	case "matches":
		c.literal(x.FunctionName(), args[1:])
	}
}

// equal holds the literals of one side against the values of the other.
func (c *enumCheck) equal(value, lit ast.Expr) {
	c.lists(value, lit)
	c.outside(c.value(value), lit)
}

// lists holds a list of literals against a list of known values.
func (c *enumCheck) lists(value, lit ast.Expr) {
	if lit.Kind() != ast.ListKind {
		return
	}
	if v := c.value(value); v.of.elem != nil {
		for _, x := range lit.AsList().Elements() {
			c.outside(known{*v.of.elem, v.path}, x)
		}
	}
}

// outside reports a literal that is not one of the known values.
func (c *enumCheck) outside(v known, lit ast.Expr) {
	if c.found != nil || !v.of.limited() {
		return
	}
	if yes, no, ok := branches(lit); ok {
		c.outside(v, yes)
		c.outside(v, no)
		return
	}
	if lit.Kind() != ast.LiteralKind {
		return
	}
	switch l := lit.AsLiteral().(type) {
	case types.String:
		if len(v.of.enum) > 0 && !slices.Contains(v.of.enum, string(l)) {
			c.report(lit, fmt.Sprintf("%s is never %q", v.name(), string(l)), Nearest(string(l), v.of.enum), v.of)
		}
	case types.Int:
		if v.of.span != nil && !v.of.span.holds(int64(l)) {
			c.report(lit, fmt.Sprintf("%s is never %d", v.name(), l), "", v.of)
		}
	}
}

func (c *enumCheck) report(at ast.Expr, message, suggestion string, of Type) {
	if suggestion == "" {
		suggestion = of.allowed()
	}
	c.found = c.at(at, message, suggestion)
}

func (c *enumCheck) at(x ast.Expr, message, suggestion string) *Error {
	loc := c.tree.SourceInfo().GetStartLocation(x.ID())
	return &Error{Line: loc.Line(), Col: loc.Column() + 1, Message: message, Suggestion: suggestion}
}

// ordered reports a comparison of a number that no value of it can satisfy.
func (c *enumCheck) ordered(op string, a, b ast.Expr) {
	v, lit := c.value(a), b
	if a.Kind() == ast.LiteralKind {
		v, lit = c.value(b), a
		op = map[string]string{
			operators.Less: operators.Greater, operators.LessEquals: operators.GreaterEquals,
			operators.Greater: operators.Less, operators.GreaterEquals: operators.LessEquals,
		}[op]
	}
	if v.of.span == nil || lit.Kind() != ast.LiteralKind || c.found != nil {
		return
	}
	n, ok := lit.AsLiteral().(types.Int)
	if !ok {
		return
	}
	s := v.of.span
	never := map[string]bool{
		operators.Less: s.least >= int64(n), operators.LessEquals: s.least > int64(n),
		operators.Greater: s.most <= int64(n), operators.GreaterEquals: s.most < int64(n),
	}[op]
	if never {
		c.report(lit, fmt.Sprintf("%s is never %s %d", v.name(), operatorSpelled.Replace(op), n), "", v.of)
	}
}

// literal reports a string that is not a valid pattern, time or duration: the function
// would fail each time, and a rule that fails denies.
func (c *enumCheck) literal(function string, args []ast.Expr) {
	into := map[string]ref.Type{"timestamp": types.TimestampType, "duration": types.DurationType}[function]
	if len(args) != 1 || args[0].Kind() != ast.LiteralKind || into == nil && function != "matches" || c.found != nil {
		return
	}
	text, ok := args[0].AsLiteral().(types.String)
	if !ok {
		return
	}
	if function == "matches" {
		if err := types.String("").Match(text); types.IsError(err) {
			c.found = c.at(args[0], fmt.Sprintf("%q is no pattern: %v", string(text), err), "patterns are written as in RE2, without look-around and references")
		}
		return
	}
	if types.IsError(text.ConvertToType(into)) {
		hint := "write it as in '2026-01-31T12:00:00Z'"
		if function == "duration" {
			hint = "write it as in '90s' or '1h30m'"
		}
		c.found = c.at(args[0], fmt.Sprintf("%q is no %s", string(text), function), hint)
	}
}

// loops are the names that loops over known values give their elements. A name
// that another loop gives to something else is left out.
func (c *enumCheck) loops() map[string]known {
	found, other := map[string]known{}, map[string]bool{}
	ast.PreOrderVisit(c.tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.ComprehensionKind {
			return
		}
		loop := x.AsComprehension()
		name := loop.IterVar()
		if loop.HasIterVar2() {
			other[name], name = true, loop.IterVar2()
		}
		list := c.value(loop.IterRange())
		of := list.of.elem
		before, twice := found[name]
		if of == nil || !loop.HasIterVar2() && list.of.cel.Kind() != types.ListKind || // a loop over a map takes its keys
			!of.limited() || twice && (before.path == "" || before.path != list.path) {
			other[name] = true
			return
		}
		found[name] = known{*of, list.path}
	}))
	for name := range other {
		delete(found, name)
	}
	return found
}

// value is what is known of an expression's value.
func (c *enumCheck) value(x ast.Expr) known {
	if yes, no, ok := branches(x); ok {
		return c.either(yes, no)
	}
	if x.Kind() == ast.IdentKind {
		if v, ok := c.elements[x.AsIdent()]; ok {
			return v
		}
	}
	if x.Kind() == ast.CallKind {
		call := x.AsCall()
		switch {
		case call.FunctionName() == operators.Index:
			if list := c.value(call.Args()[0]); list.of.elem != nil {
				return known{*list.of.elem, list.path}
			}
		case call.FunctionName() == operators.OptSelect && call.Args()[1].Kind() == ast.LiteralKind:
			return c.optional(call)
		case call.FunctionName() == "orValue" && call.IsMemberFunction():
			return c.either(call.Target(), call.Args()[0])
		case call.FunctionName() == "value" && call.IsMemberFunction():
			return c.value(call.Target())
		}
	}
	return known{c.env.fieldOf(c.tree, x), pathOf(x)}
}

// optional is what is known of call.args.?mode where it is there.
func (c *enumCheck) optional(x ast.CallExpr) known {
	of, name := x.Args()[0], x.Args()[1].AsLiteral()
	t := c.tree.GetType(of.ID())
	if t != nil && t.TypeName() == types.OptionalType.TypeName() && len(t.Parameters()) == 1 {
		t = t.Parameters()[0]
	}
	field, ok := name.(types.String)
	if o := c.env.objectOf(t); o != nil && ok {
		return known{o.fields[string(field)].Type, strings.TrimPrefix(pathOf(of)+"."+string(field), ".")}
	}
	return known{}
}

// either is what is known of a value that is one of two: the values of both.
func (c *enumCheck) either(a, b ast.Expr) known {
	x, y := c.oneOf(a), c.oneOf(b)
	if x.path == "" {
		x.path = y.path
	}
	out := known{path: x.path}
	if len(x.of.enum) > 0 && len(y.of.enum) > 0 {
		out.of = Enum(slices.Concat(x.of.enum, y.of.enum)...)
	}
	if s, t := x.of.span, y.of.span; s != nil && t != nil {
		out.of.span = &span{least: min(s.least, t.least), most: max(s.most, t.most)}
		if s.only != nil && t.only != nil {
			out.of.span.only = slices.Concat(s.only, t.only)
		}
	}
	return out
}

// oneOf takes a literal for the only value there is.
func (c *enumCheck) oneOf(x ast.Expr) known {
	if x.Kind() != ast.LiteralKind {
		return c.value(x)
	}
	switch l := x.AsLiteral().(type) {
	case types.String:
		return known{of: Enum(string(l))}
	case types.Int:
		return known{of: Numbers(int64(l))}
	}
	return known{}
}

func (v known) name() string {
	if v.path == "" {
		return "it"
	}
	return v.path
}

// branches are the values of a ? b : c.
func branches(x ast.Expr) (yes, no ast.Expr, ok bool) {
	if x.Kind() != ast.CallKind || x.AsCall().FunctionName() != operators.Conditional {
		return nil, nil, false
	}
	args := x.AsCall().Args()
	return args[1], args[2], true
}

// span is the numbers that an integer can be.
type span struct {
	least, most int64
	// only lists them; nil are all between the two.
	only []int64
}

func (s *span) holds(n int64) bool {
	return n >= s.least && n <= s.most && (s.only == nil || slices.Contains(s.only, n))
}

// limited reports whether a type lists its values.
func (t Type) limited() bool { return len(t.enum) > 0 || t.span != nil }

// allowed names the values of a limited type.
func (t Type) allowed() string {
	s := t.span
	switch {
	case s == nil:
		return "allowed are " + strings.Join(t.enum, ", ")
	case s.only != nil:
		return "allowed are " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.only)), ", "), "[]")
	case s.least == math.MinInt64:
		return fmt.Sprintf("at most %d is allowed", s.most)
	case s.most == math.MaxInt64:
		return fmt.Sprintf("at least %d is allowed", s.least)
	}
	return fmt.Sprintf("allowed are %d to %d", s.least, s.most)
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

// outcome is the type of an expression's value; if its values are listed, expressions that
// read it are checked against them, too.
func (e *Env) outcome(tree *ast.AST, out *types.Type) Type {
	t := Type{cel: out, object: e.objectOf(out)}
	c := &enumCheck{env: e, tree: tree}
	v := c.value(tree.Expr()).of
	if v.cel == nil || out == nil || !v.cel.IsExactType(out) {
		return t
	}
	t.enum, t.span = v.enum, v.span
	if v.elem != nil && v.elem.limited() {
		t.elem = &Type{cel: v.elem.cel, enum: v.elem.enum, span: v.elem.span}
	}
	return t
}
