package files

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// automaton finds the lines of a text that match an expression, each line by itself. It is
// a deterministic automaton over bytes whose states are built when they are first needed,
// so a byte costs one look into a table. It has one user at a time.
type automaton struct {
	prog *syntax.Prog
	// begins, words: the expression asks whether a line begins, or where words do.
	begins, words bool
	start         *state
	states        map[string]*state
	lanes         [lanes]lane
	resets        int
	// Space for the closure of a state.
	seen  []bool
	stack []uint32
	reach []uint32
	key   []byte
}

// state is what may come next of the expression after some characters of a line.
type state struct {
	// next is the state after a byte. It is nil if it was not needed yet, if a line
	// matches before the byte, and for the bytes of characters that are not ASCII.
	next [256]*state
	// at are the instructions to go on from, before those that consume nothing.
	at   []uint32
	last rune // stands for the character before: -1 for a line's beginning, 'a' for a part of a word
}

const (
	// maxStates bounds the memory of an automaton to about 2 MB. When there are more,
	// it begins again with none.
	maxStates = 1000
	// maxResets is how often that may happen in one text.
	maxResets = 4
	lanes     = 4
)

func newAutomaton(prog *syntax.Prog) *automaton {
	a := &automaton{prog: prog, seen: make([]bool, len(prog.Inst))}
	for _, in := range prog.Inst {
		if in.Op != syntax.InstEmptyWidth {
			continue
		}
		switch syntax.EmptyOp(in.Arg) {
		case syntax.EmptyWordBoundary, syntax.EmptyNoWordBoundary:
			a.words = true
		case syntax.EmptyBeginLine, syntax.EmptyBeginText:
			a.begins = true
		case syntax.EmptyEndLine, syntax.EmptyEndText: // asked by the step at a line's end
		}
	}
	a.reset()
	return a
}

// reset forgets all states but those that the lanes are in.
func (a *automaton) reset() {
	a.resets++
	a.states = map[string]*state{}
	a.start = a.state(nil, -1)
	for i := range a.lanes {
		if s := a.lanes[i].state; s != nil {
			a.lanes[i].state = a.state(s.at, s.last)
		}
	}
}

// state returns the state of these instructions after the character last.
func (a *automaton) state(at []uint32, last rune) *state {
	switch {
	case last == -1 && a.begins:
	case a.words && syntax.IsWordChar(last):
		last = 'a'
	default:
		last = ' '
	}
	slices.Sort(at)
	at = slices.Compact(at)
	a.key = append(a.key[:0], byte(last))
	for _, pc := range at {
		a.key = append(a.key, byte(pc), byte(pc>>8), byte(pc>>16), byte(pc>>24))
	}
	if s := a.states[string(a.key)]; s != nil {
		return s
	}
	s := &state{at: slices.Clone(at), last: last}
	a.states[string(a.key)] = s
	return s
}

// step returns the state after s and the character r, -1 for a line's end; or that the
// line matches whatever follows r.
func (a *automaton) step(s *state, r rune) (next *state, match bool) {
	flags := syntax.EmptyOpContext(s.last, r)
	a.reach = a.reach[:0]
	clear(a.seen)
	match = a.follow(uint32(a.prog.Start), flags, r)
	for _, pc := range s.at {
		match = match || a.follow(pc, flags, r)
	}
	switch {
	case match:
		return nil, true
	case r == -1:
		return a.start, false
	}
	return a.state(a.reach, r), false
}

// follow goes from an instruction to all that can be reached without a character, and notes
// what r leads to from there. It reports whether one of them is the match.
func (a *automaton) follow(pc uint32, flags syntax.EmptyOp, r rune) bool {
	a.stack = append(a.stack[:0], pc)
	for len(a.stack) > 0 {
		pc := a.stack[len(a.stack)-1]
		a.stack = a.stack[:len(a.stack)-1]
		if a.seen[pc] {
			continue
		}
		a.seen[pc] = true
		switch in := &a.prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			a.stack = append(a.stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			a.stack = append(a.stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				a.stack = append(a.stack, in.Out)
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if r >= 0 && in.MatchRune(r) {
				a.reach = append(a.reach, in.Out)
			}
		case syntax.InstFail:
		}
	}
	return false
}

// lane is a part of a text on its way through the automaton.
type lane struct {
	text  []byte
	at    int
	state *state // nil: no line is left to ask
	// lines are where matching lines begin, most of them at most.
	lines []int
	most  int
}

// matching appends to lines where the matching lines of text begin, at most so many. It
// reports whether it could: an expression with too many states is not for an automaton.
//
// The state after a byte is needed to look up the one after the next byte, so a processor
// would mostly wait. Four parts of the text in turn give it something to do meanwhile.
func (a *automaton) matching(text []byte, most int, lines []int) ([]int, bool) {
	from := 0
	for i := range a.lanes {
		to := len(text)
		if i < lanes-1 {
			to = from + (len(text)-from)/(lanes-i)
			to += lineLength(text[to:])
		}
		l := &a.lanes[i]
		*l = lane{text: text[from:to], state: a.start, lines: l.lines[:0], most: most}
		from = to
	}
	a.resets = 0
	a.together()
	from = 0
	for i := range a.lanes {
		l := &a.lanes[i]
		a.finish(l)
		for _, begin := range l.lines[:min(len(l.lines), most-len(lines))] {
			lines = append(lines, from+begin)
		}
		from += len(l.text)
	}
	return lines, a.resets <= maxResets
}

// matches reports whether a line matches, and whether that could be found.
func (a *automaton) matches(line []byte) (match, ok bool) {
	for i := range a.lanes {
		a.lanes[i].state = nil
	}
	l := &a.lanes[0]
	*l = lane{text: line, state: a.start, lines: l.lines[:0], most: 1}
	a.resets = 0
	a.finish(l)
	return len(l.lines) > 0, a.resets <= maxResets
}

// lineLength is the length of the first line of text with its end.
func lineLength(text []byte) int {
	if n := bytes.IndexByte(text, '\n'); n >= 0 {
		return n + 1
	}
	return len(text)
}

// together moves all lanes on until one has reached its end.
func (a *automaton) together() {
	l := &a.lanes
	for {
		n := len(l[0].text) - l[0].at
		for i := range l {
			n = min(n, len(l[i].text)-l[i].at)
		}
		if n == 0 {
			return
		}
		t0, t1, t2, t3 := l[0].text[l[0].at:][:n], l[1].text[l[1].at:][:n], l[2].text[l[2].at:][:n], l[3].text[l[3].at:][:n]
		s0, s1, s2, s3 := l[0].state, l[1].state, l[2].state, l[3].state
		k := 0
		for ; k < n; k++ {
			n0, n1, n2, n3 := s0.next[t0[k]], s1.next[t1[k]], s2.next[t2[k]], s3.next[t3[k]]
			if n0 == nil || n1 == nil || n2 == nil || n3 == nil {
				break
			}
			s0, s1, s2, s3 = n0, n1, n2, n3
		}
		for i, s := range [lanes]*state{s0, s1, s2, s3} {
			l[i].at += k
			l[i].state = s
		}
		if k == n {
			return
		}
		for i := range l {
			a.advance(&l[i])
		}
	}
}

// finish moves a lane to its end.
func (a *automaton) finish(l *lane) {
	for l.at < len(l.text) {
		s, rest := l.state, l.text[l.at:]
		k := 0
		for ; k < len(rest); k++ {
			next := s.next[rest[k]]
			if next == nil {
				break
			}
			s = next
		}
		l.at += k
		l.state = s
		if k < len(rest) {
			a.advance(l)
		}
	}
	if n := len(l.text); n > 0 && l.text[n-1] != '\n' && l.state != nil {
		if _, match := a.step(l.state, -1); match {
			a.note(l)
		}
	}
}

// advance moves a lane on by a character.
func (a *automaton) advance(l *lane) {
	b := l.text[l.at]
	if next := l.state.next[b]; next != nil {
		l.state, l.at = next, l.at+1
		return
	}
	if len(a.states) > maxStates {
		a.reset()
	}
	r, size := rune(b), 1
	switch {
	case b == '\n':
		r = -1
	case b >= utf8.RuneSelf:
		r, size = utf8.DecodeRune(l.text[l.at:])
	}
	next, match := a.step(l.state, r)
	if match {
		a.note(l)
		return
	}
	if b < utf8.RuneSelf {
		l.state.next[b] = next
	}
	l.state, l.at = next, l.at+size
}

// note appends the line that a lane is in, and moves the lane to the next line.
func (a *automaton) note(l *lane) {
	begin := bytes.LastIndexByte(l.text[:l.at], '\n') + 1
	l.lines = append(l.lines, begin)
	l.at = begin + lineLength(l.text[begin:])
	l.state = a.start
	if l.at == len(l.text) || len(l.lines) == l.most || a.resets > maxResets {
		l.at, l.state = len(l.text), nil
	}
}
