package shell

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (a *analyser) stmts(list []*syntax.Stmt, sc *scope) {
	for _, s := range list {
		a.stmt(s, sc)
	}
}

func (a *analyser) stmt(s *syntax.Stmt, sc *scope) {
	if s.Background || s.Coprocess || s.Disown {
		sc = sc.copy()
	}
	inner := sc
	if s.Cmd == nil {
		a.redirects(s.Redirs, sc)
		return
	}
	// Commands come before the redirections, as a reader expects; the paths of
	// both are sets.
	before := *sc
	a.command(s.Cmd, inner)
	a.redirects(s.Redirs, &before)
}

func (a *analyser) command(c syntax.Command, sc *scope) {
	switch c := c.(type) {
	case *syntax.CallExpr:
		a.call(c, sc)
	case *syntax.Block:
		a.stmts(c.Stmts, sc)
	case *syntax.Subshell:
		a.stmts(c.Stmts, sc.copy())
	case *syntax.BinaryCmd:
		a.binary(c, sc)
	case *syntax.IfClause:
		a.ifClause(c, sc)
	case *syntax.WhileClause:
		a.branches(sc, func(s *scope) { a.stmts(c.Cond, s); a.stmts(c.Do, s) })
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
		}
		a.stmt(c.Stmt, sc.copy())
	default:
		a.dynamic(fmt.Sprintf("a construct that is not understood: %T", c))
	}
}

func (a *analyser) binary(c *syntax.BinaryCmd, sc *scope) {
	switch c.Op {
	case syntax.AndStmt:
		a.stmt(c.X, sc)
		a.stmt(c.Y, sc)
	case syntax.OrStmt:
		// The right side runs where the left one failed, a cd included.
		before := sc.copy()
		a.stmt(c.X, sc)
		right := before.copy()
		if sc.cwd != before.cwd || sc.known != before.known {
			right.known = false
		}
		a.stmt(c.Y, right)
		if right.cwd != before.cwd || !leaves(c.Y) && (sc.cwd != before.cwd || sc.known != before.known) {
			sc.known = false
		}
	default:
		a.stmt(c.X, sc.copy())
		a.stmt(c.Y, sc.copy())
	}
}

// leaves says that a statement ends the script or the function.
func leaves(s *syntax.Stmt) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	switch call.Args[0].Lit() {
	case "exit", "return":
		return true
	}
	return false
}

// branches walks code that may run any number of times, or not at all.
func (a *analyser) branches(sc *scope, walks ...func(*scope)) {
	cwd, known := sc.cwd, sc.known
	for _, walk := range walks {
		branch := sc.copy()
		branch.cwd, branch.known = cwd, known
		n := len(a.facts.Writes) + len(a.facts.Reads)
		walk(branch)
		if branch.cwd == cwd && branch.known == known {
			continue
		}
		sc.known = false
		// A loop's second round starts where the first one ended.
		if len(a.facts.Writes)+len(a.facts.Reads) > n {
			a.dynamic("a loop or branch changes the folder")
		}
	}
}

func (a *analyser) ifClause(c *syntax.IfClause, sc *scope) {
	a.stmts(c.Cond, sc)
	walks := []func(*scope){func(s *scope) { a.stmts(c.Then, s) }}
	if c.Else != nil {
		walks = append(walks, func(s *scope) {
			if len(c.Else.Cond) == 0 {
				a.stmts(c.Else.Then, s)
				return
			}
			a.ifClause(c.Else, s)
		})
	}
	a.branches(sc, walks...)
}

func (a *analyser) forClause(c *syntax.ForClause, sc *scope) {
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		a.taint(l.Name.Value)
		for _, w := range l.Items {
			a.visit(w, sc)
		}
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
			a.arithm(x, sc)
		}
	default:
		a.dynamic(fmt.Sprintf("a loop that is not understood: %T", l))
	}
	a.understood = true
	a.branches(sc, func(s *scope) { a.stmts(c.Do, s) })
}

func (a *analyser) caseClause(c *syntax.CaseClause, sc *scope) {
	a.understood = true
	a.visit(c.Word, sc)
	var walks []func(*scope)
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			a.visit(p, sc)
		}
		walks = append(walks, func(s *scope) { a.stmts(item.Stmts, s) })
	}
	a.branches(sc, walks...)
}

// funcDecl walks the body where it is declared: it may be called anywhere.
func (a *analyser) funcDecl(c *syntax.FuncDecl, sc *scope) {
	names := c.Names
	if c.Name != nil {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		a.dynamic("a function without a name")
	}
	for _, n := range names {
		if isKnown(n.Value) {
			a.dynamic("the function " + n.Value + " takes the place of a program")
		}
		if _, again := a.funcs[n.Value]; again {
			a.dynamic("the function " + n.Value + " is declared twice")
		}
	}
	body := sc.copy()
	paths := len(a.facts.Writes) + len(a.facts.Reads)
	a.stmt(c.Body, body)
	moves := body.cwd != sc.cwd || body.known != sc.known
	if moves && len(a.facts.Writes)+len(a.facts.Reads) > paths {
		a.dynamic("a function changes the folder")
	}
	for _, n := range names {
		a.funcs[n.Value] = moves
	}
	a.understood = true
}

func (a *analyser) declClause(c *syntax.DeclClause, sc *scope) {
	cmd := Command{Name: c.Variant.Value, Argv: []string{c.Variant.Value}, Wrappers: sc.wrappers}
	for _, as := range c.Args {
		if as.Naked && as.Name == nil {
			w := a.value(as.Value)
			a.visit(as.Value, sc)
			if !w.known || strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text, "nif") {
				a.dynamic("a declaration that changes how variables are read")
			}
			cmd.Argv = append(cmd.Argv, w.shown())
			continue
		}
		if as.Name != nil {
			cmd.Argv = append(cmd.Argv, as.Name.Value)
		}
		a.assign(as, sc)
	}
	a.add(cmd)
}

func (a *analyser) assign(as *syntax.Assign, sc *scope) {
	a.understood = true
	if as.Name != nil && !as.Naked {
		if selects(as.Name.Value) {
			a.dynamic("the variable " + as.Name.Value + " decides what runs")
		}
		if as.Value != nil {
			w := a.value(as.Value)
			if !w.known || !isNumber(w.text) {
				a.taint(as.Name.Value)
			}
			if loads(as.Name.Value) && w.known {
				a.read(w.text, sc)
			}
		}
	}
	if as.Index != nil {
		a.arithm(as.Index, sc)
	}
	if as.Value != nil {
		a.visit(as.Value, sc)
	}
	if as.Array != nil {
		if as.Name != nil {
			a.taint(as.Name.Value)
		}
		for _, el := range as.Array.Elems {
			if el.Index != nil {
				a.arithm(el.Index, sc)
			}
			if el.Value != nil {
				a.visit(el.Value, sc)
			}
		}
	}
}

// taint notes that a variable holds text that is no literal number.
func (a *analyser) taint(name string) { a.tainted[name] = true }

// evaluated checks the arithmetic of the whole script: a loop may read a
// variable before the line that fills it.
func (a *analyser) evaluated() {
	for name := range a.computed {
		if a.tainted[name] || name == "" {
			a.dynamic("arithmetic on a variable that holds foreign text")
		}
	}
}

// arithm finds commands in arithmetic. Arithmetic on a variable evaluates the
// variable's text again, so a variable that holds foreign text can run commands.
func (a *analyser) arithm(x syntax.ArithmExpr, sc *scope) {
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		if name := x.Lit(); name != "" {
			a.computed[name] = true
		}
		for _, p := range x.Parts {
			if pe, ok := p.(*syntax.ParamExp); ok {
				name := ""
				if pe.Param != nil {
					name = pe.Param.Value
				}
				if isNumber(name) || name == "@" || name == "*" {
					// A positional parameter is whatever the caller handed over.
					name = ""
				}
				a.computed[name] = true
			}
		}
		// Quotes do not protect: the text inside is evaluated.
		if v := a.value(x); strings.ContainsAny(v.text, "[$`") {
			a.dynamic("arithmetic that evaluates an index")
		}
		a.visit(x, sc)
	case *syntax.BinaryArithm:
		a.arithm(x.X, sc)
		a.arithm(x.Y, sc)
	case *syntax.UnaryArithm:
		a.arithm(x.X, sc)
	case *syntax.ParenArithm:
		a.arithm(x.X, sc)
	default:
		a.dynamic(fmt.Sprintf("arithmetic that is not understood: %T", x))
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
			a.numeric(x.X)
			a.numeric(x.Y)
		}
		a.test(x.X, sc)
		a.test(x.Y, sc)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			a.numeric(x.X)
		}
		a.test(x.X, sc)
	case *syntax.ParenTest:
		a.test(x.X, sc)
	default:
		a.dynamic(fmt.Sprintf("a test that is not understood: %T", x))
	}
}

// numeric judges an operand that [[ ]] evaluates as arithmetic.
func (a *analyser) numeric(x syntax.TestExpr) {
	if w, ok := x.(*syntax.Word); ok {
		if v := a.value(w); !v.known || !isNumber(v.text) {
			a.dynamic("[[ ]] evaluates a text as arithmetic")
		}
	}
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func (a *analyser) redirects(list []*syntax.Redirect, sc *scope) {
	for _, r := range list {
		if r.Word != nil {
			a.visit(r.Word, sc)
		}
		if r.Hdoc != nil {
			a.visit(r.Hdoc, sc)
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
			if r.Op == syntax.DplIn && !isDescriptor(a.value(r.Word)) {
				a.dynamic("a descriptor that is not known")
			}
		case syntax.RdrIn:
			a.open(r.Word, sc, false)
		case syntax.RdrInOut:
			a.open(r.Word, sc, false)
			a.open(r.Word, sc, true)
		case syntax.DplOut:
			if !isDescriptor(a.value(r.Word)) {
				a.open(r.Word, sc, true)
			}
		default:
			// Every other operator writes; so would one of a later version.
			a.open(r.Word, sc, true)
		}
	}
}

func isDescriptor(w word) bool {
	return w.known && (w.text == "-" || isNumber(strings.TrimSuffix(w.text, "-")))
}

// open records a file that the shell opens.
func (a *analyser) open(target *syntax.Word, sc *scope, write bool) {
	if procSubst(target) {
		return
	}
	w := a.value(target)
	if w.known && w.text == "/dev/null" {
		return
	}
	path := Unknown
	if w.known && !w.split {
		path = a.path(w.text, sc)
	}
	if path == Unknown || w.glob {
		a.dynamic("a redirection to a path that is not known")
	}
	if strings.HasPrefix(path, "/dev/tcp/") || strings.HasPrefix(path, "/dev/udp/") {
		parts := strings.Split(path, "/")
		a.network(len(parts) <= 3)
		if len(parts) > 3 {
			a.host(parts[3])
		}
	}
	a.facts.Redirects = append(a.facts.Redirects, Redirect{path, write})
	if write {
		a.facts.Writes = appendNew(a.facts.Writes, path)
	} else {
		a.facts.Reads = appendNew(a.facts.Reads, path)
	}
}
