package expr

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// Absence is a part of an expression that has no value for some inputs: an item of a list
// that may be shorter, an entry of a map, an argument that a call may leave out. The
// evaluation then fails.
type Absence struct {
	// Text is the part, for example paths[0] or agent.labels.team.
	Text string
	// Guard is a condition that holds only where the part has a value; it is
	// combined with the rest by &&.
	Guard string
}

// Absences lists the parts of the expression that may have no value where they are read,
// each once. A guarded part is not among them: in CEL a false side of && absorbs an error
// of the other side, and a true side of || does too.
func (p *Program) Absences() []Absence {
	w := absences{env: p.env, typeOf: p.ast.NativeRep().GetType, found: map[string]Absence{}}
	w.walk(p.ast.NativeRep().Expr(), nil)
	out := make([]Absence, 0, len(w.found))
	for _, text := range slices.Sorted(maps.Keys(w.found)) {
		out = append(out, w.found[text])
	}
	return out
}

type absences struct {
	env    *Env
	typeOf func(id int64) *types.Type
	found  map[string]Absence
}

// present is what is known to have a value: paths of maps and objects, and the
// least size of lists.
type present struct {
	paths map[string]bool
	sizes map[string]int64
}

func (w *absences) walk(x ast.Expr, known []present) {
	switch x.Kind() {
	case ast.SelectKind:
		w.selected(x, known)
	case ast.CallKind:
		w.call(x, known)
		return
	case ast.ComprehensionKind:
		c := x.AsComprehension()
		w.walk(c.IterRange(), known)
		w.walk(c.AccuInit(), known)
		if at := written(c.IterRange()); at != "" { // the body is evaluated for an item only
			known = append(slices.Clip(known), present{sizes: map[string]int64{at: 1}})
		}
		w.walk(c.LoopCondition(), known)
		w.walk(c.LoopStep(), known)
		w.walk(c.Result(), known)
		return
	}
	for _, c := range children(x) {
		w.walk(c, known)
	}
}

func (w *absences) selected(x ast.Expr, known []present) {
	s := x.AsSelect()
	if s.IsTestOnly() {
		return
	}
	of := w.typeOf(s.Operand().ID())
	if w.total(s.Operand()) {
		return
	}
	object := w.env.objectOf(of)
	optional := object != nil && object.fields[s.FieldName()].Optional
	if at := written(s.Operand()); at != "" && (optional || of != nil && of.Kind() == types.MapKind) {
		text := at + "." + s.FieldName()
		w.missing(text, "has("+text+")", slices.ContainsFunc(known, func(p present) bool { return p.paths[text] }))
	}
}

func (w *absences) call(x ast.Expr, known []present) {
	c := x.AsCall()
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalAnd:
		w.sides(args, known, true)
		return
	case operators.LogicalOr:
		w.sides(args, known, false)
		return
	case operators.Conditional:
		w.walk(args[0], known)
		w.walk(args[1], append(slices.Clip(known), facts(args[0], true)))
		w.walk(args[2], append(slices.Clip(known), facts(args[0], false)))
		return
	case operators.Index:
		w.indexed(args[0], args[1], known)
	}
	for _, child := range children(x) {
		w.walk(child, known)
	}
}

// sides walks the operands of && or ||, each with what the others ensure.
func (w *absences) sides(args []ast.Expr, known []present, truth bool) {
	for i, a := range args {
		here := slices.Clip(known)
		for j, b := range args {
			if i != j {
				here = append(here, facts(b, truth))
			}
		}
		w.walk(a, here)
	}
}

func (w *absences) indexed(of, key ast.Expr, known []present) {
	at := written(of)
	if at == "" || key.Kind() != ast.LiteralKind {
		return
	}
	switch key := key.AsLiteral().(type) {
	case types.Int:
		n := int64(key)
		held := slices.ContainsFunc(known, func(p present) bool { return p.sizes[at] > n }) || n == 0 && splits(of)
		w.missing(fmt.Sprintf("%s[%d]", at, n), fmt.Sprintf("size(%s) > %d", at, n), held)
	case types.String:
		if t := w.typeOf(of.ID()); t == nil || t.Kind() != types.MapKind || w.total(of) {
			return
		}
		text := at + "." + string(key)
		held := slices.ContainsFunc(known, func(p present) bool { return p.paths[text] })
		w.missing(fmt.Sprintf("%s[%q]", at, string(key)), fmt.Sprintf("%q in %s", string(key), at), held)
	}
}

// total reports whether every key of a map has a value.
func (w *absences) total(x ast.Expr) bool {
	t, ok := w.env.typeOf(x)
	return ok && t.total
}

func (w *absences) missing(text, guard string, held bool) {
	if !held {
		w.found[text] = Absence{Text: text, Guard: guard}
	}
}

// facts collects what has a value where a condition is true, or where it is false.
func facts(x ast.Expr, truth bool) present {
	p := present{paths: map[string]bool{}, sizes: map[string]int64{}}
	p.collect(x, truth)
	return p
}

func (p present) collect(x ast.Expr, truth bool) {
	switch x.Kind() {
	case ast.SelectKind:
		if s := x.AsSelect(); s.IsTestOnly() && truth {
			if at := written(s.Operand()); at != "" {
				p.paths[at+"."+s.FieldName()] = true
			}
		}
	case ast.ComprehensionKind:
		// exists begins with false, all with true: the other value needs an item.
		c := x.AsComprehension()
		if c.AccuInit().Kind() != ast.LiteralKind {
			return
		}
		if begin, ok := c.AccuInit().AsLiteral().(types.Bool); ok && bool(begin) != truth {
			p.atLeast(c.IterRange(), 1)
		}
	case ast.CallKind:
		p.collectCall(x.AsCall(), truth)
	}
}

func (p present) collectCall(c ast.CallExpr, truth bool) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr:
		if truth == (c.FunctionName() == operators.LogicalAnd) {
			for _, a := range args {
				p.collect(a, truth)
			}
		}
	case operators.LogicalNot:
		p.collect(args[0], !truth)
	case operators.In:
		if !truth {
			return
		}
		p.atLeast(args[1], 1)
		if at := written(args[1]); at != "" && args[0].Kind() == ast.LiteralKind {
			if key, ok := args[0].AsLiteral().(types.String); ok {
				p.paths[at+"."+string(key)] = true
			}
		}
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		p.compared(c.FunctionName(), args[0], args[1], truth)
	}
}

// mirrored and negated are the comparisons with sides swapped, and when they do
// not hold.
var (
	mirrored = map[string]string{
		operators.Less: operators.Greater, operators.LessEquals: operators.GreaterEquals, operators.Greater: operators.Less,
		operators.GreaterEquals: operators.LessEquals, operators.Equals: operators.Equals, operators.NotEquals: operators.NotEquals,
	}
	negated = map[string]string{
		operators.Less: operators.GreaterEquals, operators.LessEquals: operators.Greater, operators.Greater: operators.LessEquals,
		operators.GreaterEquals: operators.Less, operators.Equals: operators.NotEquals, operators.NotEquals: operators.Equals,
	}
)

// compared reads size(x) > 1 and its like, and x != [].
func (p present) compared(op string, left, right ast.Expr, truth bool) {
	if !truth {
		op = negated[op]
	}
	if sized(left) == nil && left.Kind() != ast.IdentKind && left.Kind() != ast.SelectKind {
		left, right, op = right, left, mirrored[op]
	}
	if op == operators.NotEquals && right.Kind() == ast.ListKind && right.AsList().Size() == 0 {
		p.atLeast(left, 1)
		return
	}
	of := sized(left)
	if of == nil || right.Kind() != ast.LiteralKind {
		return
	}
	n, ok := right.AsLiteral().(types.Int)
	switch {
	case !ok:
	case op == operators.Greater:
		p.atLeast(of, int64(n)+1)
	case op == operators.GreaterEquals, op == operators.Equals:
		p.atLeast(of, int64(n))
	case op == operators.NotEquals && n == 0:
		p.atLeast(of, 1)
	}
}

func (p present) atLeast(list ast.Expr, n int64) {
	if at := written(list); at != "" {
		p.sizes[at] = max(p.sizes[at], n)
	}
}

// sized returns x of size(x) and x.size(), nil for anything else.
func sized(x ast.Expr) ast.Expr {
	if x.Kind() != ast.CallKind || x.AsCall().FunctionName() != overloads.Size {
		return nil
	}
	if c := x.AsCall(); c.IsMemberFunction() {
		return c.Target()
	}
	return x.AsCall().Args()[0]
}

// splits reports whether an expression is a text that is split, of which there is
// at least one part.
func splits(x ast.Expr) bool {
	if x.Kind() != ast.CallKind {
		return false
	}
	c := x.AsCall()
	return c.IsMemberFunction() && c.FunctionName() == "split" && len(c.Args()) == 1
}

func literal(x ast.Expr) (text string, ok bool) {
	if x.Kind() != ast.LiteralKind {
		return "", false
	}
	t, ok := x.AsLiteral().(types.String)
	return string(t), ok
}

// written returns a chain of names, fields, constant indexes and split texts as its
// author writes it; "" for anything else.
func written(x ast.Expr) string {
	switch x.Kind() {
	case ast.IdentKind:
		return x.AsIdent()
	case ast.SelectKind:
		if at := written(x.AsSelect().Operand()); at != "" {
			return at + "." + x.AsSelect().FieldName()
		}
	case ast.CallKind:
		c := x.AsCall()
		if splits(x) {
			at, sep := written(c.Target()), c.Args()[0]
			if text, ok := literal(sep); ok && at != "" {
				return fmt.Sprintf("%s.split(%q)", at, text)
			}
			return ""
		}
		if c.FunctionName() != operators.Index || c.Args()[1].Kind() != ast.LiteralKind {
			return ""
		}
		at := written(c.Args()[0])
		switch key := c.Args()[1].AsLiteral().(type) {
		case types.Int:
			if at != "" {
				return fmt.Sprintf("%s[%d]", at, int64(key))
			}
		case types.String:
			if at != "" {
				return at + "." + string(key)
			}
		}
	}
	return ""
}
