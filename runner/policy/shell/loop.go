package shell

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Limits of the loops that are walked once for each value.
const (
	valuesLimit = 16
	roundsLimit = 64
)

// forClause walks for and select. Where all words of the loop are spelled out, the
// body is walked once for each: so that a variable of a loop is as known as its words.
func (a *analyser) forClause(c *syntax.ForClause, sc *scope) {
	a.understood = true
	l, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		a.cStyle(c, sc)
		return
	}
	values, known := a.iterates(l, sc)
	name, numeric := l.Name.Value, known && len(values) > 0
	for _, v := range values {
		numeric = numeric && isNumber(v.text)
	}
	if c.Select {
		a.assigned(literal("REPLY"), false, sc)
		known, numeric = false, false // the user chooses, or nothing
	}
	a.loopVariable(name, numeric)
	body := func(s *scope) {
		s.vars = s.vars.with(name, numeric)
		a.stmts(c.Do, s)
	}
	switch {
	case known && len(values) > 0 && len(values) <= valuesLimit && a.rounds+len(values) <= roundsLimit:
		a.rounds += len(values)
		for _, v := range values {
			end := sc.copy()
			a.bind(name, v, func() { a.loop(end, body) })
			sc.yes, sc.no = sc.yes.union(end.yes), sc.no.union(end.no)
		}
		a.resplit(name, values, sc)
	case numeric:
		a.bind(name, word{number: true}, func() { a.loop(sc, body) })
	default:
		a.loop(sc, body)
	}
}

// readLoop walks a loop that reads names, one a line, from a pipe.
func (a *analyser) readLoop(c *syntax.WhileClause, sc *scope) bool {
	if sc.input == nil || c.Until || len(c.Cond) != 1 || len(c.Cond[0].Redirs) > 0 {
		return false
	}
	call, ok := simple(c.Cond[0])
	if !ok || c.Cond[0].Negated || len(call.Args) == 0 || call.Args[0].Lit() != "read" || a.funcs["read"] != nil {
		return false
	}
	p, ok := namingOptions["read"].parse(a.words(call.Args[1:], sc), stopAtOperand)
	if !ok || len(p.operands) != 1 || !p.operands[0].known || !plainName().MatchString(p.operands[0].text) {
		return false
	}
	raw, zero := false, false
	for _, o := range p.options {
		switch {
		case o.name == "r":
			raw = true
		case o.name == "d" && o.value.known && o.value.text == "":
			zero = true
		default:
			return false
		}
	}
	in := a.output(sc.input)
	if in == nil || a.rounds+len(in.words) > roundsLimit || zero != in.zero || len(call.Assigns) > 1 || len(call.Assigns) == 1 && !emptyIFS(call.Assigns[0]) {
		return false
	}
	name := p.operands[0].text
	a.consumed(in, zero && raw && len(call.Assigns) == 1, sc)
	a.add(Command{Name: "read", Argv: []string{"read", name}, Wrappers: sc.wrappers})
	a.loopVariable(name, false)
	yes, no := sc.here, sc.here
	a.rounds += len(in.words)
	for _, v := range in.words {
		end := sc.copy()
		a.bind(name, v, func() { a.loop(end, func(s *scope) { a.stmts(c.Do, s) }) })
		yes, no = yes.union(end.yes), no.union(end.no)
	}
	sc.yes, sc.no = yes, no
	a.resplit(name, in.words, sc)
	return true
}

// emptyIFS reports whether an assignment keeps read from removing spaces.
func emptyIFS(as *syntax.Assign) bool {
	return as.Name != nil && as.Name.Value == "IFS" && as.Value == nil && as.Array == nil && as.Index == nil && !as.Append
}

func (a *analyser) cStyle(c *syntax.ForClause, sc *scope) {
	l, ok := c.Loop.(*syntax.CStyleLoop)
	if !ok {
		a.dynamic(fmt.Sprintf("a loop that is not understood: %T", c.Loop))
		return
	}
	a.arithm(l.Init, sc)
	a.loop(sc, func(s *scope) {
		a.arithm(l.Cond, s)
		a.arithm(l.Post, s.copy())
		a.stmts(c.Do, s)
	})
}

// iterates are the words that a loop is over.
func (a *analyser) iterates(l *syntax.WordIter, sc *scope) (values []word, known bool) {
	known = l.InPos.IsValid()
	for _, w := range l.Items {
		for _, v := range a.expand(w, sc) {
			known = known && v.known && !v.split
			values = append(values, v)
		}
		a.visit(w, sc)
	}
	a.lists(values, sc)
	return values, known
}

// lists notes the folders that patterns are compared with.
func (a *analyser) lists(words []word, sc *scope) {
	for _, w := range words {
		if !w.known || !w.glob {
			continue
		}
		a.leading = a.leading || strings.IndexAny(w.text, "*?[") == 0
		fixed := w.text[:strings.IndexAny(w.text+"*", "*?[")]
		if end := strings.LastIndexByte(fixed, '/'); end >= 0 {
			a.facts.Folders = a.touch(a.facts.Folders, fixed[:end+1], sc)
		}
	}
}

// loopVariable records that a loop sets a variable.
func (a *analyser) loopVariable(name string, numeric bool) {
	if selects(name) {
		a.dynamic("the variable " + name + " decides what runs")
	}
	if _, bound := a.bound[name]; bound {
		a.dynamic("the variable " + name + " of a loop is changed")
		delete(a.bound, name)
	}
	if !numeric {
		a.taint(name)
		if slices.Contains(integerVariables, name) {
			a.dynamic("the shell evaluates the value of " + name + " as arithmetic")
		}
	}
	a.loops[name]++
	if a.inside > 0 {
		a.elsewhere[name]++
	}
}

// bind walks something with the value of a variable.
func (a *analyser) bind(name string, v word, walk func()) {
	outer := a.bound
	a.bound = maps.Clone(outer)
	if a.bound == nil {
		a.bound = map[string]word{}
	}
	v.bound = true
	a.bound[name] = v
	a.iterated[name] = true
	walk()
	a.bound = outer
}

// resplit notes the patterns whose names are split into words again, since the
// variable is used without quotes.
func (a *analyser) resplit(name string, values []word, sc *scope) {
	if !a.bare[name] {
		return
	}
	for _, v := range values {
		if v.glob {
			a.facts.Resplit = a.touch(a.facts.Resplit, v.text, sc)
		}
	}
}

// iteratedElsewhere checks that nothing else sets the variables of loops whose values
// were relied on: a function or a trap may run in the middle of the loop.
func (a *analyser) iteratedElsewhere() {
	for name := range a.iterated {
		if n := a.elsewhere[name]; n > 0 && (a.loops[name] > 1 || a.loops[name] < n || a.changed[name]) {
			a.dynamic("the variable " + name + " of a loop may be changed elsewhere")
		}
	}
}

// substituted puts the value of a loop's variable into a word.
func (a *analyser) substituted(v *word, b *strings.Builder, p *syntax.ParamExp, first, quoted bool) bool {
	if a.bound == nil || !isPlain(p) {
		return false
	}
	value, ok := a.bound[p.Param.Value]
	if !ok {
		return false
	}
	if !value.known {
		v.count(b)
		return true
	}
	switch {
	case strings.HasPrefix(value.text, "~") && (!first || b.Len() > 0):
		v.hide(b)
		v.split = v.split || !quoted
	case quoted:
	case value.glob:
		a.bare[p.Param.Value] = true
	case strings.ContainsAny(value.text, " \t\n*?[\\"):
		v.hide(b)
		v.split = true
	}
	v.glob, v.bound = v.glob || value.glob, true
	b.WriteString(value.text)
	return true
}
