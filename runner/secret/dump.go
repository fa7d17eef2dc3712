package secret

import (
	"bytes"
	"slices"
)

// A dump shows bytes as numbers, line by line, often with an offset before them and
// the characters behind them (xxd, od, hexdump). None of its lines holds more than
// a few bytes of a secret, and each spells them its own way: the bytes are put
// together again and searched as a text.

// dumped is one byte of a dump: where its number is, and its character, if any.
type dumped struct {
	value              byte
	start, end         int
	charStart, charEnd int
}

// style is how a dump writes its bytes.
type style struct {
	// octal numbers, otherwise hexadecimal ones.
	octal bool
	// swapped words have their bytes in the other order (od, hexdump on this machine).
	swapped bool
	// chars are characters instead of numbers, as od -c has them.
	chars bool
}

var styles = []style{{}, {swapped: true}, {octal: true}, {octal: true, swapped: true}, {chars: true}}

// maxDumpLine bounds a line of a dump: longer lines are not looked at.
const maxDumpLine = 512

// line is where a line of a text begins and ends.
type line struct{ start, end int }

// dumps calls use for each style in which some lines of a text can be read.
func dumps(b []byte, use func([]dumped)) {
	lines := dumpLines(b)
	if len(lines) == 0 {
		return
	}
	for _, s := range styles {
		var all []dumped
		for _, l := range lines {
			all = s.line(all, bytes.TrimRight(b[l.start:l.end], "\r"), l.start)
		}
		if len(all) >= MinLength {
			use(all)
		}
	}
}

// dumpLines finds the lines that may be of a dump: those whose first two words are
// numbers or single characters. It is quick with all others.
func dumpLines(b []byte) (lines []line) {
	for at := 0; at < len(b); {
		end := bytes.IndexByte(b[at:], '\n')
		if end < 0 {
			end = len(b) - at
		}
		if end <= maxDumpLine && end > 1 && isDumpLine(b[at:at+end], len(lines) > 0) {
			lines = append(lines, line{at, at + end})
		}
		at += end + 1
	}
	return lines
}

// isDumpLine looks at the first two words of a line. The last line of a dump may
// have one only.
func isDumpLine(b []byte, follows bool) bool {
	first, rest := cutWord(b)
	if !isDumpWord(first) {
		return false
	}
	second, _ := cutWord(rest)
	if len(second) == 0 {
		return follows && b[0] == ' '
	}
	return isDumpWord(second)
}

// cutWord returns the first word of a line, and what follows it.
func cutWord(b []byte) (word, rest []byte) {
	i := 0
	for i < len(b) && b[i] == ' ' {
		i++
	}
	end := i
	for end < len(b) && b[end] != ' ' {
		end++
	}
	return b[i:end], b[end:]
}

// isDumpWord reports whether a word can be an offset, a number of bytes, or one
// character.
func isDumpWord(w []byte) bool {
	w = bytes.TrimSuffix(bytes.TrimSuffix(w, []byte{':'}), []byte{','})
	if len(w) == 1 || len(w) == 2 && w[0] == '\\' {
		return true
	}
	if len(w) == 4 && w[0] == '0' && w[1] == 'x' {
		w = w[2:]
	}
	if len(w) < 2 || len(w) > 16 {
		return false
	}
	return !slices.ContainsFunc(w, func(c byte) bool { return !isHex(c) })
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// word is a group of characters without a space.
type word struct{ start, end int }

// line reads one line, which begins at at of the text.
func (s style) line(out []dumped, line []byte, at int) []dumped {
	i := 0
	next := func() word {
		for i < len(line) && line[i] == ' ' {
			i++
		}
		w := word{i, i}
		for i < len(line) && line[i] != ' ' {
			i++
		}
		w.end = i
		return w
	}
	w := next()
	if offset(line[w.start:w.end]) && w.start < 8 && !(s.isNumber(line[w.start:w.end]) && w.start > 0) {
		w = next()
	}
	first := len(out)
	for w.end > w.start {
		n := len(out)
		if out = s.number(out, line[w.start:w.end], at+w.start); len(out) == n {
			break // the characters begin here
		}
		gap := i
		if w = next(); !s.chars && w.start >= gap+2 && (w.start > gap+2 || len(line)-w.start <= len(out)-first) {
			break // and behind a gap, where what is left is not longer than they are
		}
	}
	if !s.chars && w.start < len(line) {
		characters(out[first:], line, w.start, at)
	}
	return out
}

// characters notes where in a line the characters of its bytes are: between bars, or
// at the end of the line.
func characters(out []dumped, line []byte, from, at int) {
	if c := line[from]; (c == '|' || c == '>') && len(line)-from > len(out) {
		from++
	} else {
		from = max(from, len(line)-len(out))
	}
	if len(line)-from < len(out) { // it began with spaces
		from = max(0, len(line)-len(out))
	}
	for k := range out {
		if from+k < len(line) {
			out[k].charStart, out[k].charEnd = at+from+k, at+from+k+1
		}
	}
}

// offset reports whether a word is the number of a line rather than bytes of it.
func offset(w []byte) bool {
	digits := bytes.TrimSuffix(w, []byte{':'})
	if len(digits) < 6 || len(digits) > 16 {
		return false
	}
	return !slices.ContainsFunc(digits, func(c byte) bool { return !isHex(c) })
}

// isNumber reports whether a word is read as bytes.
func (s style) isNumber(w []byte) bool { return len(s.number(nil, w, 0)) > 0 }

// number appends the bytes of a word, or nothing if it is not a number.
func (s style) number(out []dumped, w []byte, at int) []dumped {
	switch {
	case s.chars:
		return s.char(out, w, at)
	case s.octal:
		return s.octals(out, w, at)
	}
	w = bytes.TrimSuffix(w, []byte{','})
	if len(w) == 4 && w[0] == '0' && w[1] == 'x' { // xxd -i
		w, at = w[2:], at+2
	}
	if len(w) < 2 || len(w)%2 != 0 || len(w) > 16 || s.swapped && len(w) == 2 {
		return out
	}
	n := len(out)
	for i := 0; i < len(w); i += 2 {
		if !isHex(w[i]) || !isHex(w[i+1]) {
			return out[:n]
		}
		out = append(out, dumped{value: nibble(w[i])<<4 | nibble(w[i+1]), start: at + i, end: at + i + 2})
	}
	if s.swapped {
		slices.Reverse(out[n:])
	}
	return out
}

func nibble(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// octals reads bytes of three digits and words of two bytes of six.
func (s style) octals(out []dumped, w []byte, at int) []dumped {
	if len(w) != 3 && len(w) != 6 {
		return out
	}
	value := 0
	for _, c := range w {
		if c < '0' || c > '7' {
			return out
		}
		value = value<<3 | int(c-'0')
	}
	switch {
	case len(w) == 3 && value < 1<<8 && !s.swapped:
		return append(out, dumped{value: byte(value), start: at, end: at + 3})
	case len(w) == 6 && value < 1<<16:
		low, high := dumped{value: byte(value), start: at, end: at + 6}, dumped{value: byte(value >> 8), start: at, end: at + 6}
		if s.swapped {
			return append(out, low, high)
		}
		return append(out, high, low)
	}
	return out
}

// char reads one character as od -c writes it.
func (s style) char(out []dumped, w []byte, at int) []dumped {
	d := dumped{start: at, end: at + len(w)}
	switch {
	case len(w) == 1:
		d.value = w[0]
	case len(w) == 2 && w[0] == '\\':
		d.value = ' ' // \n and its like are left out of a search anyway
	case len(w) == 3:
		octal := style{octal: true}.octals(nil, w, at)
		if len(octal) == 0 {
			return out
		}
		d.value = octal[0].value
	default:
		return out
	}
	return append(out, d)
}
