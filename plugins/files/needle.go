package files

import (
	"bytes"
	"math"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// needles are texts of which each line that matches an expression has one.
type needles struct {
	texts []string
	// fold: the texts are in lower case, and so compared without regard to the case of
	// ASCII letters.
	fold bool
	// whole: what matches is one of the texts and nothing else.
	whole bool
}

const (
	// maxNeedles is how many texts are looked for at the same time.
	maxNeedles = 4
	// maxCost is how many of 1,000 bytes the rarest ones of the needles may be. With more
	// the automaton alone is faster.
	maxCost = 32
)

// needlesOf returns the needles of an expression, none if it has none that are known.
func needlesOf(re *syntax.Regexp) needles {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return needles{texts: []string{""}, whole: true}
	case syntax.OpLiteral:
		return literal(re.Rune, re.Flags&syntax.FoldCase != 0)
	case syntax.OpCharClass:
		return oneOf(re.Rune)
	case syntax.OpCapture:
		return needlesOf(re.Sub[0])
	case syntax.OpPlus:
		return needlesOf(re.Sub[0]).part()
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needlesOf(re.Sub[0]).part()
		}
	case syntax.OpQuest:
		if n := needlesOf(re.Sub[0]); n.whole {
			return n.or(needles{texts: []string{""}, whole: true})
		}
	case syntax.OpAlternate:
		all := needlesOf(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			all = all.or(needlesOf(sub))
		}
		return all
	case syntax.OpConcat:
		return inRow(re.Sub)
	default: // a star, any character, no match: nothing is known
	}
	return needles{}
}

// literal returns the text of some characters. Of those that not only equal bytes match,
// such as the Kelvin sign that is a k without regard to case, it returns a part between.
func literal(runes []rune, fold bool) needles {
	best, from := needles{}, 0
	for i := 0; i <= len(runes); i++ {
		if i < len(runes) && plain(runes[i], fold) {
			continue
		}
		text := string(runes[from:i])
		if fold {
			text = strings.ToLower(text)
		}
		best = best.better(needles{texts: []string{text}, fold: fold, whole: i-from == len(runes)})
		from = i + 1
	}
	return best
}

// plain reports whether a character of an expression matches nothing but its bytes or,
// with fold, those of its other case.
func plain(r rune, fold bool) bool {
	if fold {
		return r < utf8.RuneSelf && !strings.ContainsRune("kKsS", r)
	}
	return r != utf8.RuneError
}

// oneOf returns the characters of a small class as texts.
func oneOf(ranges []rune) needles {
	n := needles{whole: len(ranges) > 0}
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if len(n.texts) == maxNeedles || !plain(r, false) {
				return needles{}
			}
			n.texts = append(n.texts, string(r))
		}
	}
	return n
}

// inRow returns the best needles of expressions that follow each other.
func inRow(subs []*syntax.Regexp) needles {
	nothing := needles{texts: []string{""}, whole: true}
	best, row, whole := needles{}, nothing, true
	for _, sub := range subs {
		n := needlesOf(sub)
		if n.whole && len(n.texts)*len(row.texts) <= maxNeedles {
			row = row.then(n)
			continue
		}
		whole = false
		best = best.better(row).better(n)
		if row = n; !n.whole {
			row = nothing
		}
	}
	if whole {
		return row
	}
	return best.better(row).part()
}

// part are the same needles of an expression that matches more than them.
func (n needles) part() needles {
	n.whole = false
	return n
}

// then are the needles of two expressions in a row that match nothing else.
func (n needles) then(m needles) needles {
	n, m = sameCase(n, m)
	row := needles{fold: n.fold, whole: true}
	for _, a := range n.texts {
		for _, b := range m.texts {
			row.texts = append(row.texts, a+b)
		}
	}
	return row
}

// or are the needles of an expression that matches what one of two others does.
func (n needles) or(m needles) needles {
	if n.texts == nil || m.texts == nil || len(n.texts)+len(m.texts) > maxNeedles {
		return needles{}
	}
	n, m = sameCase(n, m)
	return needles{texts: slices.Concat(n.texts, m.texts), fold: n.fold, whole: n.whole && m.whole}
}

// sameCase makes both needles fold if one does.
func sameCase(n, m needles) (needles, needles) {
	for _, one := range []*needles{&n, &m} {
		if (n.fold || m.fold) && !one.fold {
			one.texts = slices.Clone(one.texts)
			for i, text := range one.texts {
				one.texts[i] = string(lower([]byte(text)))
			}
		}
	}
	n.fold = n.fold || m.fold
	m.fold = n.fold
	return n, m
}

// better returns those needles that are found faster.
func (n needles) better(m needles) needles {
	if m.cost() < n.cost() {
		return m
	}
	return n
}

// cost estimates how many of 1,000 bytes of a text are the rarest ones of the needles.
func (n needles) cost() int {
	if len(n.texts) == 0 {
		return math.MaxInt
	}
	sum := 0
	for _, text := range n.texts {
		if text == "" {
			return math.MaxInt
		}
		b := text[n.rarest(text)]
		c := n.frequency(b)
		if len(text) == 1 {
			c *= 3 // each has its line asked
		}
		sum += c
	}
	return sum
}

// frequent are the bytes of sources, the most frequent ones first.
const frequent = " et\trn\ni0a,soxlcfdup.()/1_m\"S=EgTh:2bAy{4}R3CI6OPDv8NLF5MwkB97VUG[*]H-\\XYW!;&<+|%zK>j'Qq`$"

// frequency estimates how many of 1,000 bytes are this one, in either case with fold.
func (n needles) frequency(b byte) int {
	f := 400 / (8 + rank(b))
	if n.fold && b >= 'a' && b <= 'z' {
		f += 400 / (8 + rank(b-'a'+'A'))
	}
	return f
}

// rank is the place of a byte among the frequent ones.
func rank(b byte) int {
	if i := strings.IndexByte(frequent, b); i >= 0 {
		return i
	}
	return 4 * len(frequent)
}

// rarest returns the position of the byte of text that is the rarest in sources.
func (n needles) rarest(text string) int {
	at := 0
	for i := range len(text) {
		if n.frequency(text[i]) < n.frequency(text[at]) {
			at = i
		}
	}
	return at
}

// lower turns the ASCII letters of text into lower case, in place.
func lower(text []byte) []byte {
	for i, b := range text {
		if b >= 'A' && b <= 'Z' {
			text[i] = b + 'a' - 'A'
		}
	}
	return text
}

// trail follows one byte of a needle through a text.
type trail struct {
	needle []byte
	fold   bool
	b      byte
	offset int // of the byte in the needle
	next   int // where the text has the byte next; its length if nowhere
}

// finder finds needles in one text after the other.
type finder struct {
	trails []trail
	text   []byte
}

// newFinder returns nil for needles that are not worth looking for.
func newFinder(n needles) *finder {
	if n.cost() > maxCost {
		return nil
	}
	f := &finder{}
	for _, text := range n.texts {
		at := n.rarest(text)
		f.trails = append(f.trails, trail{needle: []byte(text), fold: n.fold, b: text[at], offset: at})
		if b := text[at]; n.fold && b >= 'a' && b <= 'z' {
			f.trails = append(f.trails, trail{needle: []byte(text), fold: true, b: b - 'a' + 'A', offset: at})
		}
	}
	return f
}

// open begins with a text.
func (f *finder) open(text []byte) {
	f.text = text
	for i := range f.trails {
		f.trails[i].next = -1
		f.advance(&f.trails[i])
	}
}

func (f *finder) advance(t *trail) {
	t.next++
	if i := bytes.IndexByte(f.text[t.next:], t.b); i >= 0 {
		t.next += i
	} else {
		t.next = len(f.text)
	}
}

// find returns where the next needle at or after from begins, or -1.
func (f *finder) find(from int) int {
	for {
		t := &f.trails[0]
		for i := range f.trails {
			if f.trails[i].next < t.next {
				t = &f.trails[i]
			}
		}
		if t.next == len(f.text) {
			return -1
		}
		at := t.next - t.offset
		if t.next < from {
			t.next = from - 1 // what lies between was passed over
		}
		f.advance(t)
		if at >= from && t.at(f.text[at:]) {
			return at
		}
	}
}

// at reports whether text begins with the needle.
func (t *trail) at(text []byte) bool {
	if len(text) < len(t.needle) {
		return false
	}
	if !t.fold {
		return bytes.Equal(text[:len(t.needle)], t.needle)
	}
	for i, b := range t.needle {
		c := text[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != b {
			return false
		}
	}
	return true
}
