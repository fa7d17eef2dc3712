package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// function is one that the script declares.
type function struct {
	body *syntax.Stmt
	// at is where the shell was when it was declared, and so when it was walked.
	at folders
	// moves: it changes the folder; certain: it certainly exists by the time that it is
	// called.
	moves, certain bool
	// walking is set while the body is walked, recursive when it calls itself.
	walking, recursive bool
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
	f := &function{body: c.Body, at: sc.here, certain: a.conditional == 0, walking: true}
	for _, n := range names {
		if isKnown(n.Value) {
			a.dynamic("the function " + n.Value + " takes the place of a program")
		}
		if _, again := a.funcs[n.Value]; again {
			a.dynamic("the function " + n.Value + " is declared twice")
		}
		a.funcs[n.Value] = f
	}
	body, moves := sc.copy(), a.moves
	body.returned = &folders{}
	a.inside++
	a.maybe(func() { a.stmt(c.Body, body) })
	a.inside--
	f.moves, f.walking = a.moves > moves, false
	if f.moves && f.recursive {
		a.dynamic("a function that changes the folder calls itself")
	}
	a.understood = true
}

// callFunction judges the call of a function of the script.
func (a *analyser) callFunction(f *function, args []word, sc *scope) {
	if !f.certain {
		a.foreign(args, sc) // without the function it is a program
	}
	if f.moves {
		a.moved()
	}
	f.recursive = f.recursive || f.walking
	if !f.moves && f.at.covers(sc.here) {
		return // it was walked there, or is just now
	}
	if a.calls++; f.walking || a.calls > callsLimit {
		a.dynamic("a function calls itself, or is called too often")
		sc.yes, sc.no = folders{unknown: true}, folders{unknown: true}
		return
	}
	inner, returned := sc.copy(), folders{}
	inner.returned = &returned
	f.walking = true
	a.inside++
	a.maybe(func() { a.stmt(f.body, inner) })
	a.inside--
	f.walking = false
	sc.yes, sc.no = inner.yes.union(returned), inner.no.union(returned)
	sc.previous, sc.stack = folders{unknown: true}, nil
}
