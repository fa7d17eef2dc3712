package shell

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// constant is a number of arithmetic, with its base.
var constant = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]+#)?[0-9][0-9A-Za-z@_]*$|^[0-9]+#[0-9A-Za-z@_]+$`)
})

// arithm finds commands in arithmetic, and the variables that it reads and sets.
func (a *analyser) arithm(x syntax.ArithmExpr, sc *scope) {
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		if x != nil {
			a.arithmWord(x, sc)
		}
	case *syntax.BinaryArithm:
		a.binaryArithm(x, sc)
	case *syntax.UnaryArithm:
		a.arithm(x.X, sc)
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			a.arithmTarget(x.X, sc)
		}
	case *syntax.ParenArithm:
		a.arithm(x.X, sc)
	default:
		a.dynamic(fmt.Sprintf("arithmetic that is not understood: %T", x))
	}
}

func (a *analyser) binaryArithm(x *syntax.BinaryArithm, sc *scope) {
	switch x.Op {
	case syntax.Assgn:
		// The old value of the target is not read.
		a.arithm(x.Y, sc)
		a.arithmTarget(x.X, sc)
	case syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		a.arithm(x.X, sc)
		a.arithm(x.Y, sc)
		a.arithmTarget(x.X, sc)
	case syntax.AndArit, syntax.OrArit, syntax.TernQuest, syntax.TernColon:
		// The right side may not be evaluated: what it sets is not certain.
		a.arithm(x.X, sc)
		a.arithm(x.Y, sc.copy())
	default:
		a.arithm(x.X, sc)
		a.arithm(x.Y, sc)
	}
}

// arithmTarget records the variable that arithmetic gives a value.
func (a *analyser) arithmTarget(x syntax.ArithmExpr, sc *scope) {
	w, ok := x.(*syntax.Word)
	if !ok || len(w.Parts) != 1 {
		a.dynamic("arithmetic sets a variable that is not known")
		return
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		a.assigned(literal(p.Value), true, sc)
	case *syntax.ParamExp:
		if p.Dollar.IsValid() || p.Param == nil {
			a.dynamic("arithmetic sets a variable that is not known")
			return
		}
		a.arithmIndex(p.Index, sc)
		a.assigned(literal(p.Param.Value), true, sc)
	default:
		a.dynamic("arithmetic sets a variable that is not known")
	}
}

// arithmIndex judges the subscript of a variable.
func (a *analyser) arithmIndex(index syntax.ArithmExpr, sc *scope) {
	if w, ok := index.(*syntax.Word); ok && (w.Lit() == "@" || w.Lit() == "*") {
		return
	}
	a.arithm(index, sc)
}

// arithmWord judges an operand. Quotes do not protect it: the text is evaluated.
func (a *analyser) arithmWord(x *syntax.Word, sc *scope) {
	a.visit(x, sc)
	parts := unquoted(x.Parts)
	if len(parts) > 1 {
		// A base in front of a variable: 10#$month.
		if lit, ok := parts[0].(*syntax.Lit); ok && len(parts) == 2 && strings.HasSuffix(lit.Value, "#") && isNumber(strings.TrimSuffix(lit.Value, "#")) {
			parts = parts[1:]
		} else if name, ok := literals(parts); ok {
			a.arithmName(name, sc)
			return
		}
	}
	if len(parts) != 1 {
		if len(parts) > 1 {
			a.dynamic("arithmetic on text that is put together")
		}
		return
	}
	switch p := parts[0].(type) {
	case *syntax.Lit:
		a.arithmName(p.Value, sc)
	case *syntax.SglQuoted:
		a.arithmText(p.Value, sc)
	case *syntax.ParamExp:
		a.arithmParam(p, sc)
	case *syntax.ArithmExp:
	case *syntax.CmdSubst:
		if !printsNumber(p.Stmts) {
			a.dynamic("arithmetic on what a command prints")
		}
	default:
		a.dynamic("arithmetic on text that is not known")
	}
}

// literals joins the parts of a word that are all text.
func literals(parts []syntax.WordPart) (string, bool) {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unquoted replaces double quotes by the parts inside them.
func unquoted(parts []syntax.WordPart) []syntax.WordPart {
	if !slices.ContainsFunc(parts, func(p syntax.WordPart) bool { _, ok := p.(*syntax.DblQuoted); return ok }) {
		return parts
	}
	var out []syntax.WordPart
	for _, p := range parts {
		if q, ok := p.(*syntax.DblQuoted); ok {
			out = append(out, unquoted(q.Parts)...)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// arithmName judges an operand that the script spells out.
func (a *analyser) arithmName(text string, sc *scope) {
	switch {
	case text == "" || constant().MatchString(text):
	case plainName().MatchString(text):
		a.computes(text, sc)
	default:
		a.arithmText(text, sc)
	}
}

// arithmParam judges an expansion in arithmetic: its result is evaluated again.
func (a *analyser) arithmParam(p *syntax.ParamExp, sc *scope) {
	switch {
	case isCount(p):
	case p.Param == nil || p.Excl || p.Names != 0 || p.Repl != nil || p.Exp != nil && !isDefault(p.Exp):
		a.dynamic("arithmetic on an expansion that is not known")
	default:
		// A default is evaluated if the variable has no value.
		if p.Exp != nil && p.Exp.Word != nil {
			a.arithmWord(p.Exp.Word, sc)
			if p.Exp.Op == syntax.AlternateUnset || p.Exp.Op == syntax.AlternateUnsetOrNull {
				return
			}
		}
		if p.Index != nil {
			// The elements of an array are not followed one by one.
			if !slices.Contains(sc.vars.numbers, p.Param.Value) {
				a.dynamic("arithmetic on a variable that may hold text")
				return
			}
		}
		a.computes(p.Param.Value, sc)
	}
}

// isDefault reports whether an expansion is the variable's value or a word of the script.
func isDefault(e *syntax.Expansion) bool {
	switch e.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return true
	}
	return false
}

// printsNumber reports whether a command substitution prints nothing but a number, or
// nothing: its last command, at the end of a pipeline, is one of a few, and those before
// it are silent.
func printsNumber(stmts []*syntax.Stmt) bool {
	for i, s := range stmts {
		if s.Negated || s.Background || len(s.Redirs) > 0 {
			return false
		}
		if i+1 == len(stmts) {
			for b, ok := s.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.Pipe; b, ok = s.Cmd.(*syntax.BinaryCmd) {
				s = b.Y
			}
		}
		call, ok := simple(s)
		if !ok || len(call.Assigns) > 0 || len(s.Redirs) > 0 {
			return false
		}
		var words []string
		for _, w := range call.Args {
			words = append(words, w.Lit())
		}
		if !silent(words) && (i+1 < len(stmts) || !countingCommand(words)) {
			return false
		}
	}
	return true
}

// silent reports whether a command prints nothing on its output.
func silent(words []string) bool {
	if len(words) == 0 || !slices.Contains([]string{"rm", "mkdir", "touch", "true", ":", "sleep"}, words[0]) {
		return false
	}
	return !slices.ContainsFunc(words, func(w string) bool { return w == "" || strings.HasPrefix(w, "-") && strings.Contains(w, "v") })
}

func countingCommand(words []string) bool {
	switch strings.Join(words, " ") {
	case "nproc", "date +%s", "date +%s%N", "wc -l", "wc -c", "wc -w", "id -u", "id -g":
		return true
	}
	return len(words) == 2 && words[0] == "echo" && isNumber(words[1])
}
