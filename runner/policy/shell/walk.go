package shell

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (a *analyser) stmts(list []*syntax.Stmt, sc *scope) {
	sc.input = nil // one of them may read a part of a line
	sc.yes, sc.no = sc.here, sc.here
	for _, s := range list {
		a.stmt(s, sc)
		sc.settle()
	}
}

// settle continues after a statement, whether it has succeeded or not. Nothing runs after
// one that ends the script, but the rest is analysed all the same.
func (s *scope) settle() {
	if both := s.yes.union(s.no); !both.empty() {
		s.here = both
	}
}

// stmt walks a statement, and leaves in sc where the shell is behind it.
func (a *analyser) stmt(s *syntax.Stmt, sc *scope) {
	sc.yes, sc.no = sc.here, sc.here
	if s.Cmd == nil {
		a.redirects(s.Redirs, sc)
		return
	}
	// Commands come before the redirections, as a reader expects; the paths of
	// both are sets.
	before := sc.copy()
	if len(s.Redirs) > 0 && !silenced(s.Redirs) {
		sc.input = nil
	}
	if s.Background || s.Coprocess || s.Disown {
		a.maybe(func() { a.command(s.Cmd, sc.copy()) })
	} else {
		a.command(s.Cmd, sc)
	}
	a.redirects(s.Redirs, before)
	if len(s.Redirs) > 0 {
		// Where a file cannot be opened, the command does not run.
		sc.no = sc.no.union(before.here)
		sc.vars = before.vars
	}
	if s.Negated {
		sc.yes, sc.no = sc.no, sc.yes
	}
}

func (a *analyser) command(c syntax.Command, sc *scope) {
	switch c := c.(type) {
	case *syntax.CallExpr:
		a.call(c, sc)
	case *syntax.Block:
		a.stmts(c.Stmts, sc)
	case *syntax.Subshell:
		a.maybe(func() { a.stmts(c.Stmts, sc.copy()) })
	case *syntax.BinaryCmd:
		a.binary(c, sc)
	case *syntax.IfClause:
		a.ifClause(c, sc)
	case *syntax.WhileClause:
		a.whileClause(c, sc)
	case *syntax.ForClause:
		a.forClause(c, sc)
	case *syntax.CaseClause:
		a.caseClause(c, sc)
	case *syntax.FuncDecl:
		a.funcDecl(c, sc)
	case *syntax.ArithmCmd:
		a.understood = true
		a.arithm(c.X, sc)
	case *syntax.TestClause:
		a.understood = true
		a.test(c.X, sc)
	case *syntax.DeclClause:
		a.declClause(c, sc)
	case *syntax.LetClause:
		a.add(Command{Name: "let", Argv: []string{"let"}, Wrappers: sc.wrappers})
		for _, x := range c.Exprs {
			a.arithm(x, sc)
		}
	case *syntax.TimeClause:
		if c.Stmt != nil {
			a.stmt(c.Stmt, sc)
		}
		a.understood = true
	case *syntax.CoprocClause:
		if c.Name != nil {
			a.visit(c.Name, sc)
			name := a.value(c.Name)
			a.assigned(name, true, sc)
			a.assigned(literal(name.text+"_PID"), true, sc)
		}
		a.stmt(c.Stmt, sc.copy())
	default:
		a.dynamic(fmt.Sprintf("a construct that is not understood: %T", c))
	}
}

// maybe walks what may not run, or runs somewhere else: a function that is declared
// there may not exist.
func (a *analyser) maybe(walk func()) {
	a.conditional++
	walk()
	a.conditional--
}

func (a *analyser) binary(c *syntax.BinaryCmd, sc *scope) {
	switch c.Op {
	case syntax.AndStmt, syntax.OrStmt:
		a.stmt(c.X, sc)
		// The right side runs where the left one has succeeded, or failed.
		yes, no, vars := sc.yes, sc.no, sc.vars
		if c.Op == syntax.AndStmt {
			sc.here = yes
		} else {
			sc.here = no
		}
		if sc.here.empty() {
			sc.here = yes.union(no)
		}
		a.maybe(func() { a.stmt(c.Y, sc) })
		sc.vars = vars
		if c.Op == syntax.AndStmt {
			sc.no = sc.no.union(no)
		} else {
			sc.yes = sc.yes.union(yes)
		}
	default:
		here := sc.here
		a.maybe(func() {
			from, to := sc.copy(), sc.copy()
			to.input = &source{c.X, sc.input, from.copy()}
			a.stmt(c.X, from)
			a.stmt(c.Y, to)
		})
		sc.yes, sc.no = here, here
	}
}

// ends analyses exit and return. Nothing runs after either, unless an argument makes it
// fail, or there is no function to return from.
func (a *analyser) ends(name string, args []word, sc *scope) {
	if len(args) > 1 || len(args) == 1 && !args[0].number && !(args[0].known && isNumber(args[0].text)) {
		return
	}
	switch {
	case name == "exit":
		sc.yes, sc.no = folders{}, folders{}
	case name == "return" && sc.returned != nil:
		*sc.returned = sc.returned.union(sc.here)
		sc.yes, sc.no = folders{}, folders{}
	}
}

// loop walks code that may run any number of times, or not at all.
func (a *analyser) loop(sc *scope, walk func(*scope)) {
	start := sc.here
	body := sc.copy()
	n := len(a.facts.Writes) + len(a.facts.Reads) + len(a.facts.Operands)
	a.maybe(func() { walk(body) })
	end := body.yes.union(body.no)
	switch {
	case start.covers(end):
	case len(a.facts.Writes)+len(a.facts.Reads)+len(a.facts.Operands) > n:
		// A second round starts where the first one has ended.
		a.dynamic("a loop changes the folder")
		fallthrough
	default:
		start = start.union(folders{unknown: true})
	}
	sc.yes, sc.no = start, start
}

func (a *analyser) whileClause(c *syntax.WhileClause, sc *scope) {
	if a.readLoop(c, sc) {
		return
	}
	a.loop(sc, func(s *scope) {
		a.stmts(c.Cond, s)
		a.stmts(c.Do, s)
	})
}

func (a *analyser) ifClause(c *syntax.IfClause, sc *scope) {
	a.stmts(c.Cond, sc)
	vars := sc.vars
	then, other := sc.copy(), sc.copy()
	then.here, other.here = sc.yes, sc.no
	for _, s := range []*scope{then, other} {
		if s.here.empty() {
			s.here = sc.here
		}
	}
	a.maybe(func() { a.stmts(c.Then, then) })
	switch {
	case c.Else == nil:
		other.yes, other.no = other.here, folders{}
	case len(c.Else.Cond) == 0:
		a.maybe(func() { a.stmts(c.Else.Then, other) })
	default:
		a.maybe(func() { a.ifClause(c.Else, other) })
	}
	sc.yes, sc.no, sc.vars = then.yes.union(other.yes), then.no.union(other.no), vars
}

func (a *analyser) caseClause(c *syntax.CaseClause, sc *scope) {
	a.understood = true
	a.visit(c.Word, sc)
	start := sc.here
	yes, no, before := start, start, folders{}
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			a.visit(p, sc)
		}
		s := sc.copy()
		s.here = start.union(before)
		a.maybe(func() { a.stmts(item.Stmts, s) })
		yes, no = yes.union(s.yes), no.union(s.no)
		before = folders{}
		if item.Op != syntax.Break { // the next item runs, too
			before = s.yes.union(s.no)
		}
	}
	sc.yes, sc.no = yes, no
}

// callsLimit bounds how often functions are walked again.
const callsLimit = 32

func (a *analyser) declClause(c *syntax.DeclClause, sc *scope) {
	name := c.Variant.Value
	cmd := Command{Name: name, Argv: []string{name}, Wrappers: sc.wrappers}
	a.listed(name, a.declared(c))
	for _, as := range c.Args {
		if as.Naked && as.Name == nil {
			w := a.value(as.Value)
			a.visit(as.Value, sc)
			if w.known && len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+') {
				a.declareFlags(name, w.text)
			} else {
				a.declares(w, sc)
			}
			cmd.Argv = append(cmd.Argv, w.shown())
			continue
		}
		if as.Name != nil {
			cmd.Argv = append(cmd.Argv, as.Name.Value)
		}
		if as.Naked && as.Name != nil {
			a.declares(literal(as.Name.Value), sc)
		}
		a.assign(as, sc)
	}
	a.add(cmd)
}

// declared are the words of a declaration that assign nothing.
func (a *analyser) declared(c *syntax.DeclClause) (words []word) {
	for _, as := range c.Args {
		switch {
		case as.Name == nil:
			words = append(words, a.value(as.Value))
		case as.Naked:
			words = append(words, literal(as.Name.Value))
		}
	}
	return words
}

func (a *analyser) assign(as *syntax.Assign, sc *scope) {
	a.understood = true
	if as.Index != nil {
		a.arithmIndex(as.Index, sc)
	}
	if as.Value != nil {
		a.visit(as.Value, sc)
	}
	if as.Array != nil {
		for _, el := range as.Array.Elems {
			if el.Index != nil {
				a.arithmIndex(el.Index, sc)
			}
			if el.Value != nil {
				a.visit(el.Value, sc)
			}
		}
	}
	if as.Name == nil || as.Naked {
		return
	}
	numeric := false
	if as.Value != nil && as.Index == nil {
		w := a.value(as.Value)
		numeric = w.known && isNumber(w.text) && !w.glob || !w.known && w.number && !w.split && strings.Trim(w.text, "0123456789"+someName) == ""
		if numeric && as.Append && !slices.Contains(sc.vars.numbers, as.Name.Value) {
			numeric = false // what it is appended to may be text
		}
		if loads(as.Name.Value) && w.known {
			a.read(w.text, sc)
		}
	}
	if as.Index != nil && as.Value != nil {
		// An element of an array: the array is as good as its worst element.
		w := a.value(as.Value)
		numeric = w.known && isNumber(w.text) && slices.Contains(sc.vars.numbers, as.Name.Value)
	}
	before := sc.vars
	a.assigned(literal(as.Name.Value), numeric, sc)
	if (as.Append || as.Index != nil) && !slices.Contains(before.all, as.Name.Value) {
		sc.vars.all = before.all // the old value is a part of the new one
	}
}

func (a *analyser) test(x syntax.TestExpr, sc *scope) {
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		a.visit(x, sc)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			a.numeric(x.X, sc)
			a.numeric(x.Y, sc)
		}
		a.test(x.X, sc)
		a.test(x.Y, sc)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			a.testedName(x.X, sc)
		}
		a.test(x.X, sc)
	case *syntax.ParenTest:
		a.test(x.X, sc)
	default:
		a.dynamic(fmt.Sprintf("a test that is not understood: %T", x))
	}
}

// numeric judges an operand that [[ ]] evaluates as arithmetic.
func (a *analyser) numeric(x syntax.TestExpr, sc *scope) {
	if w, ok := x.(*syntax.Word); ok {
		a.arithmWord(w, sc)
	}
}

// testedName judges the name of a variable that [[ -v ]] looks for: its subscript is
// evaluated.
func (a *analyser) testedName(x syntax.TestExpr, sc *scope) {
	w, ok := x.(*syntax.Word)
	if !ok {
		return
	}
	v := a.value(w)
	name, subscript, indexed := strings.Cut(v.text, "[")
	switch {
	case !v.known || !plainName().MatchString(name) && !isNumber(name):
		a.dynamic("[[ ]] evaluates a text as arithmetic")
	case indexed:
		a.subscript(strings.TrimSuffix(subscript, "]"), sc)
	}
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
