package files

import (
	"bytes"
	"strings"
)

// rule is how oldString was found in a file, the strictest first.
type rule string

const (
	ruleExact  rule = "exact match"
	ruleBlanks rule = "match without trailing blanks"
	ruleIndent rule = "match with another indentation"
)

// place is a part of the text to replace, and by what.
type place struct {
	start, end int
	with       []byte
}

// find returns the places of before in text, by the first rule that finds any. There is no
// rule for similar texts: a wrong place is worse than none.
func find(text []byte, before, after string) (rule, []place) {
	eol := lineEnd(text)
	after = withEnds(after, eol)
	for _, b := range []string{before, withEnds(before, eol)} {
		if p := exact(text, []byte(b), []byte(after)); len(p) > 0 {
			return ruleExact, p
		}
	}
	if strings.TrimSpace(before) == "" {
		return "", nil // blank lines are alike everywhere
	}
	old := blockOf(before)
	for _, try := range []struct {
		rule  rule
		equal func(*block, []line) (string, indent, bool)
	}{{ruleBlanks, (*block).sameText}, {ruleIndent, (*block).sameShape}} {
		if p := old.places(text, after, eol, try.equal); len(p) > 0 {
			return try.rule, p
		}
	}
	return "", nil
}

// exact returns all places, none overlapping another.
func exact(text, before, after []byte) []place {
	var all []place
	for at := 0; ; {
		i := bytes.Index(text[at:], before)
		if i < 0 {
			return all
		}
		all = append(all, place{at + i, at + i + len(before), after})
		at += i + len(before)
	}
}

// lineEnd is the line end that most lines of text have.
func lineEnd(text []byte) string {
	crlf := bytes.Count(text, []byte("\r\n"))
	if crlf*2 > bytes.Count(text, []byte("\n")) {
		return "\r\n"
	}
	return "\n"
}

// withEnds gives every line of s the same end.
func withEnds(s, eol string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if eol == "\n" {
		return s
	}
	return strings.ReplaceAll(s, "\n", eol)
}

// line is a line of a file and its position.
type line struct {
	text string // without its end and trailing blanks
	// start of the line, end of its text, next the start of the following line.
	start, end, next int
}

// linesOf splits text; what follows the last line end is a line unless empty.
func linesOf(text []byte) []line {
	var all []line
	for at := 0; at < len(text); {
		next, end := len(text), len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end, next = at+i, at+i+1
			if end > at && text[end-1] == '\r' {
				end--
			}
		}
		all = append(all, line{strings.TrimRight(string(text[at:end]), " \t\r"), at, end, next})
		at = next
	}
	return all
}

// block is oldString as lines.
type block struct {
	lines []string // without trailing blanks
	// closed: the last line has its end, which is then replaced too.
	closed bool
}

func blockOf(s string) *block {
	b := &block{}
	s = withEnds(s, "\n")
	s, b.closed = strings.CutSuffix(s, "\n")
	for l := range strings.SplitSeq(s, "\n") {
		b.lines = append(b.lines, strings.TrimRight(l, " \t\r"))
	}
	return b
}

// places returns where whole lines of text equal the block.
func (b *block) places(text []byte, after, eol string, equal func(*block, []line) (string, indent, bool)) []place {
	all := linesOf(text)
	var found []place
	for i := 0; i+len(b.lines) <= len(all); i++ {
		win := all[i : i+len(b.lines)]
		prefix, how, ok := equal(b, win)
		if !ok {
			continue
		}
		with, ok := how.apply(after, prefix, eol)
		if !ok {
			continue
		}
		last := win[len(win)-1]
		p := place{win[0].start, last.end, []byte(with)}
		if b.closed {
			p.end = last.next
		}
		found = append(found, p)
		i += len(b.lines) - 1
	}
	return found
}

// sameText compares lines but for trailing blanks.
func (b *block) sameText(win []line) (string, indent, bool) {
	for i, l := range b.lines {
		if win[i].text != l {
			return "", keep, false
		}
	}
	return "", keep, true
}

// indent is what has to be done to the lines of newString.
type indent int

const (
	keep indent = iota
	deepen
	flatten
)

// sameShape compares lines whose indentation differs by the same prefix on
// every line that is not blank.
func (b *block) sameShape(win []line) (string, indent, bool) {
	prefix, how, known := "", keep, false
	for i, want := range b.lines {
		got := win[i].text
		if want == "" || got == "" {
			if want != got {
				return "", keep, false
			}
			continue
		}
		if !known {
			var ok bool
			if prefix, how, ok = shift(want, got); !ok {
				return "", keep, false
			}
			known = true
		}
		if how == deepen && got != prefix+want || how == flatten && want != prefix+got {
			return "", keep, false
		}
	}
	return prefix, how, known
}

// shift returns the blanks by which one line is deeper than the other.
func shift(want, got string) (string, indent, bool) {
	if p, ok := strings.CutSuffix(got, want); ok && strings.Trim(p, " \t") == "" {
		return p, deepen, true
	}
	if p, ok := strings.CutSuffix(want, got); ok && strings.Trim(p, " \t") == "" {
		return p, flatten, true
	}
	return "", keep, false
}

// apply gives newString the file's indentation; it cannot if a line that should
// become flatter is not indented that far.
func (n indent) apply(after, prefix, eol string) (string, bool) {
	if n == keep {
		return after, true
	}
	parts := strings.Split(after, eol)
	for i, l := range parts {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if n == deepen {
			parts[i] = prefix + l
			continue
		}
		rest, ok := strings.CutPrefix(l, prefix)
		if !ok {
			return "", false
		}
		parts[i] = rest
	}
	return strings.Join(parts, eol), true
}

// replace returns text with the places replaced.
func replace(text []byte, places []place) []byte {
	var b bytes.Buffer
	at := 0
	for _, p := range places {
		b.Write(text[at:p.start])
		b.Write(p.with)
		at = p.end
	}
	b.Write(text[at:])
	return b.Bytes()
}

// lineAt is the number of the line of a position.
func lineAt(text []byte, at int) int { return 1 + bytes.Count(text[:at], []byte{'\n'}) }

// nearest returns the line of text most like the first full line of before.
func nearest(text []byte, before string) (int, string) {
	var want string
	for l := range strings.SplitSeq(before, "\n") {
		if want = strings.TrimSpace(l); want != "" {
			break
		}
	}
	best, at, shown := 0, 0, ""
	for i, l := range linesOf(text) {
		got := strings.TrimSpace(l.text)
		if s := alike(want, got); s > best {
			best, at, shown = s, i+1, l.text
		}
	}
	if best < 50 {
		return 0, ""
	}
	return at, shown
}

// alike returns in percent how much of two lines is equal at both ends.
func alike(a, b string) int {
	long := max(len(a), len(b))
	if long == 0 {
		return 0
	}
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	m := 0
	for m < min(len(a), len(b))-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	return (n + m) * 100 / long
}
