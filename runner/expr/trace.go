package expr

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Step is a part of an expression and the value it had.
type Step struct {
	// Expression as its author could have written it.
	Expression string `json:"expression"`
	// Value as JSON, "unknown", or "error: " and why.
	Value string `json:"value"`
}

// Limits of a trace: it is for people.
const (
	traceSteps = 40
	traceText  = 300
)

// Trace evaluates a condition again and returns the values of its parts, the whole first.
// Parts that were not evaluated, because an earlier part decided, are left out, and so are
// the bodies of loops.
func (p *Program) Trace(ctx context.Context, in Input) ([]Step, error) {
	opts := append(tracked(), cel.EvalOptions(cel.OptTrackState, cel.OptTrackCost))
	var vars any = in.Vars
	if in.Unknown != nil {
		opts = append(tracked(), cel.EvalOptions(cel.OptTrackState, cel.OptTrackCost, cel.OptPartialEval))
		partial, err := cel.PartialVars(in.Vars, in.Unknown.patterns...)
		if err != nil {
			return nil, err
		}
		vars = partial
	}
	prog, err := p.cel.Program(p.ast, opts...)
	if err != nil {
		return nil, fmt.Errorf("plan the expression: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	whole, details, err := prog.ContextEval(ctx, vars)
	if details == nil {
		return nil, err
	}
	root := p.ast.NativeRep().Expr()
	t := &tracer{info: p.written(), seen: map[string]bool{}}
	t.value = func(id int64) (ref.Val, bool) {
		if v, ok := details.State().Value(id); ok || id != root.ID() || whole == nil {
			return v, ok
		}
		return whole, true // a loop is not watched
	}
	t.visit(root)
	return t.steps, nil
}

// written is the source information of the expression with its loops: to print loops takes
// information that a parser keeps only on request.
func (p *Program) written() *ast.SourceInfo {
	info := p.ast.NativeRep().SourceInfo()
	src := p.ast.Source()
	b, err := base()
	if err != nil || src == nil {
		return info
	}
	if b, err = b.Extend(cel.EnableMacroCallTracking()); err != nil {
		return info
	}
	// One parser gives one text the same ids each time.
	again, issues := b.Parse(src.Content())
	if issues.Err() != nil {
		return info
	}
	return again.NativeRep().SourceInfo()
}

type tracer struct {
	info  *ast.SourceInfo
	value func(id int64) (ref.Val, bool)
	seen  map[string]bool
	steps []Step
}

func (t *tracer) visit(x ast.Expr) {
	if len(t.steps) == traceSteps || constant(x) {
		return
	}
	t.note(x)
	if x.Kind() == ast.ComprehensionKind {
		t.visit(x.AsComprehension().IterRange())
		return
	}
	if steps(x) != nil {
		return // the parts of a.b.c are larger than the whole
	}
	for _, c := range children(x) {
		t.inner(x, c)
	}
}

// inner visits a part. In a row of conditions only the whole row and each of
// them say something, not the beginnings of the row.
func (t *tracer) inner(x, part ast.Expr) {
	if !rowed(x) || part.Kind() != ast.CallKind || part.AsCall().FunctionName() != x.AsCall().FunctionName() {
		t.visit(part)
		return
	}
	for _, c := range children(part) {
		t.inner(part, c)
	}
}

func rowed(x ast.Expr) bool {
	return x.Kind() == ast.CallKind && slices.Contains([]string{operators.LogicalAnd, operators.LogicalOr}, x.AsCall().FunctionName())
}

// constant reports whether an expression reads nothing: its value is its text.
func constant(x ast.Expr) bool {
	return x.Kind() != ast.IdentKind && x.Kind() != ast.ComprehensionKind && !slices.ContainsFunc(children(x), func(c ast.Expr) bool { return !constant(c) })
}

func (t *tracer) note(x ast.Expr) {
	v, ok := t.value(x.ID())
	if !ok {
		return
	}
	text, err := cel.ExprToString(x, t.info)
	if err != nil || t.seen[text] {
		return
	}
	t.seen[text] = true
	t.steps = append(t.steps, Step{Expression: clipped(text), Value: clipped(shown(v))})
}

func shown(v ref.Val) string {
	switch v := v.(type) {
	case *types.Err:
		return "error: " + v.Error()
	case *types.Unknown:
		return "unknown"
	}
	n, err := native(v)
	if err != nil {
		return "a " + v.Type().TypeName()
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(n); err != nil {
		return fmt.Sprint(n)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func clipped(s string) string {
	if r := []rune(s); len(r) > traceText {
		return string(r[:traceText]) + "…"
	}
	return s
}
