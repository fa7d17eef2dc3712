package expr

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"agentctl.dev/agentctl/api/reason"
)

// Error is a mistake in an expression, with its position.
type Error struct {
	// Line and Col in the expression, counted from 1.
	Line, Col int
	Message   string
	// Suggestion is what the author may have meant: a name, or a short advice.
	Suggestion string
	// Field and Object are set when a field is missing: the field's name and
	// the path it was looked up on, for example "call.args".
	Field, Object string
}

// Error returns the message with its suggestion.
func (e *Error) Error() string {
	if e.Suggestion == "" {
		return e.Message
	}
	return e.Message + "; " + e.Suggestion
}

var (
	undefinedField = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^undefined field '(.*)'$`)
	})
	undeclaredName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	})
	noOverload = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '(.*)'$`)
	})
	operatorSpelled = strings.NewReplacer("_==_", "==", "_!=_", "!=", "_&&_", "&&", "_||_", "||", "!_", "!",
		"_<_", "<", "_<=_", "<=", "_>_", ">", "_>=_", ">=", "_+_", "+", "_-_", "-", "_*_", "*", "_/_", "/", "_%_", "%", "@in", "in", "_[_]", "[]", "_?_:_", "?:")
)

// problem turns the first issue into an Error in our words.
func (e *Env) problem(tree *ast.AST, iss *cel.Issues) error {
	errs := iss.Errors()
	if len(errs) == 0 {
		return &Error{Line: 1, Col: 1, Message: iss.Err().Error()}
	}
	first := errs[0]
	p := &Error{Line: first.Location.Line(), Col: first.Location.Column() + 1, Message: strings.TrimPrefix(first.Message, "Syntax error: ")}
	if p.Line < 1 {
		p.Line, p.Col = 1, 1
	}
	if m := undefinedField().FindStringSubmatch(first.Message); m != nil {
		e.explainField(p, tree, first.ExprID, m[1])
	} else if m := undeclaredName().FindStringSubmatch(first.Message); m != nil {
		p.Message = fmt.Sprintf("there is no variable or function %s", m[1])
		p.Suggestion = e.nearestName(m[1], called(tree, m[1]))
	} else if m := noOverload().FindStringSubmatch(first.Message); m != nil {
		p.Message = fmt.Sprintf("%s does not work on %s", operatorSpelled.Replace(m[1]), m[2])
	} else if tree == nil {
		p.Message = "syntax error: " + p.Message
	}
	if p.Suggestion == "" {
		p.Suggestion = hint(p.Message)
	}
	return p
}

// called reports whether an expression uses a name as a function.
func called(tree *ast.AST, name string) (found bool) {
	if tree == nil {
		return false
	}
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		found = found || x.Kind() == ast.CallKind && x.AsCall().FunctionName() == name
	}))
	return found
}

// nearestName is the existing name that is most similar to one that does not exist.
func (e *Env) nearestName(name string, function bool) string {
	if function {
		if c, err := e.build(); err == nil {
			return Nearest(name, functions(c))
		}
	}
	known := e.names()
	if s := Nearest(name, known); s != "" || len(known) == 0 {
		return s
	}
	return "variables are " + strings.Join(known, ", ")
}

func (e *Env) explainField(p *Error, tree *ast.AST, id int64, field string) {
	p.Field = field
	p.Message = fmt.Sprintf("there is no field %s", field)
	var operand ast.Expr
	if tree != nil {
		ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
			if x.ID() != id {
				return
			}
			if x.Kind() == ast.SelectKind {
				operand = x.AsSelect().Operand()
			} else if x.Kind() == ast.CallKind && len(x.AsCall().Args()) > 0 {
				operand = x.AsCall().Args()[0]
			}
		}))
	}
	if operand != nil {
		if path := pathOf(operand); path != "" {
			p.Object = path
			p.Message = fmt.Sprintf("%s has no field %s", path, field)
		}
		if t, ok := e.typeOf(operand); ok && t.object != nil {
			p.Suggestion = Nearest(field, t.Fields())
			if p.Suggestion == "" && len(t.Fields()) > 0 {
				p.Suggestion = "it has " + strings.Join(t.Fields(), ", ")
			}
			return
		}
	}
	p.Suggestion = Nearest(field, e.fieldNames())
}

// pathOf writes idents and selects as a.b.c; "" for anything else.
func pathOf(x ast.Expr) string {
	switch x.Kind() {
	case ast.IdentKind:
		return x.AsIdent()
	case ast.SelectKind:
		if p := pathOf(x.AsSelect().Operand()); p != "" {
			return p + "." + x.AsSelect().FieldName()
		}
	case ast.CallKind:
		if call := x.AsCall(); call.FunctionName() == operators.Index {
			if p := pathOf(call.Args()[0]); p != "" && call.Args()[1].Kind() == ast.LiteralKind {
				return fmt.Sprintf("%s[%v]", p, call.Args()[1].AsLiteral().Value())
			}
		}
	}
	return ""
}

// Nearest returns "did you mean x?" for the closest name, or "" when none is close.
func Nearest(name string, names []string) string {
	// Of two letters, one is not a slip but another name.
	best := reason.Nearest(name, names)
	if best == "" || len(name) < 3 && !strings.EqualFold(best, name) {
		return ""
	}
	return "did you mean " + best + "?"
}
