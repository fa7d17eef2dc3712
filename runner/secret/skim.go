package secret

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reading is a way to read a text while looking for secrets. All of them leave out
// what a program may put inside a value without changing what a person or a later
// cleaner reads: white space and line breaks (fold, base64), escape sequences
// (grep --color), control and invisible characters, and bytes that are not UTF-8.
type reading struct {
	// json decodes the escapes of JSON strings.
	json bool
	// bare leaves out the ESC of an escape sequence only: a program that does not
	// know a sequence shows the rest of it.
	bare bool
	// written decodes escapes that are part of the text, however often they were escaped, as
	// in JSON that an answer holds: a break is left out, and so is every backslash.
	written bool
}

// The kinds of a byte at which a character begins. The loop over a text adds the
// kind to a length, so that it needs no branch for the bytes that are left out.
const (
	left    = 0
	kept    = 1
	special = 2
)

var kinds, kindsEscaped = byteKinds(false), byteKinds(true)

func byteKinds(escaped bool) (k [256]uint8) {
	for c := range k {
		k[c] = kept
		switch {
		case c == 0x1b || leads(byte(c)) || escaped && c == '\\':
			k[c] = special
		case c <= ' ' || c >= 0x7f: // at which no UTF-8 character begins, above 0x7f
			k[c] = left
		}
	}
	return k
}

// leads reports whether a UTF-8 character of several bytes can begin with a byte.
func leads(c byte) bool { return c >= 0xc2 && c <= 0xf4 }

// places are where the bytes of a skimmed text come from.
type places struct{ start, end []int }

// skimmer skims a text piece by piece.
type skimmer struct {
	reading
	b  []byte
	at int
}

// next appends skimmed bytes until dst is full or the text ends. The places, unless
// nil, get one entry for each byte.
func (s *skimmer) next(dst []byte, p *places) []byte {
	k := &kinds
	if s.json || s.written {
		k = &kindsEscaped
	}
	for s.at < len(s.b) && len(dst) <= cap(dst)-utf8.UTFMax {
		if p == nil {
			dst = s.run(dst, k)
		} else {
			dst = s.track(dst, k, p)
		}
		if s.at == len(s.b) || k[s.b[s.at]] != special || len(dst) > cap(dst)-utf8.UTFMax {
			continue
		}
		r, n := s.character(s.b[s.at:])
		if r >= 0 {
			dst = p.add(dst, r, s.at, n)
		}
		s.at += n
	}
	return dst
}

// run appends the bytes before the next special one.
func (s *skimmer) run(dst []byte, k *[256]uint8) []byte {
	room := dst[len(dst) : cap(dst)-utf8.UTFMax+1]
	b := s.b[s.at:]
	b = b[:min(len(b), len(room))]
	n := 0
	for i, c := range b {
		kind := k[c]
		if kind == special {
			if leads(c) && i+1 < len(b) && utf8.RuneStart(b[i+1]) {
				continue // not UTF-8, as most of such bytes in an image
			}
			s.at += i
			return dst[:len(dst)+n]
		}
		room[n] = c
		n += int(kind)
	}
	s.at += len(b)
	return dst[:len(dst)+n]
}

// track is run with the places.
func (s *skimmer) track(dst []byte, k *[256]uint8, p *places) []byte {
	for s.at < len(s.b) && len(dst) <= cap(dst)-utf8.UTFMax {
		c := s.b[s.at]
		switch k[c] {
		case special:
			return dst
		case kept:
			dst = append(dst, c)
			p.start, p.end = append(p.start, s.at), append(p.end, s.at+1)
		}
		s.at++
	}
	return dst
}

// add appends a character that is written in n bytes from at on.
func (p *places) add(dst []byte, r rune, at, n int) []byte {
	before := len(dst)
	dst = utf8.AppendRune(dst, r)
	if p == nil {
		return dst
	}
	for i := range len(dst) - before {
		if n == len(dst)-before { // as it is, and not as an escape
			p.start, p.end = append(p.start, at+i), append(p.end, at+i+1)
		} else {
			p.start, p.end = append(p.start, at), append(p.end, at+n)
		}
	}
	return dst
}

// character reads one character and its width; -1 is one that is left out.
func (s *skimmer) character(b []byte) (rune, int) {
	r, n := s.decode(b)
	switch {
	case r == 0x1b && !s.bare:
		return -1, n + s.sequence(b[n:])
	case r == utf8.RuneError, r < 0, ignored(r):
		return -1, n
	}
	return r, n
}

// unwritten reads one character that backslashes stand before. They are left out; at the
// end of a text an escape may follow.
func (s *skimmer) unwritten(b []byte) (rune, int) {
	n := 0
	for n < len(b) && b[n] == '\\' {
		n++
	}
	if n == len(b) || s.json && b[n] == '"' && n%2 == 0 { // there the string ends
		return -1, n
	}
	switch b[n] {
	case 'n', 'r', 't':
		return ' ', n + 1
	case 'u':
		if len(b) < n+5 {
			return -1, len(b)
		}
		r, ok := hex4(b[n+1 : n+5])
		if !ok {
			return 'u', n + 1
		}
		at := n + 5
		for at < len(b) && b[at] == '\\' {
			at++
		}
		if r >= 0xd800 && r < 0xdc00 && at > n+5 && len(b) >= at+5 && b[at] == 'u' {
			if low, ok := hex4(b[at+1 : at+5]); ok && low >= 0xdc00 && low < 0xe000 {
				return (r-0xd800)<<10 + (low - 0xdc00) + 0x10000, at + 5
			}
		}
		return r, n + 5
	}
	r, width := utf8.DecodeRune(b[n:])
	return r, n + width
}

// decode reads one character, in JSON also one that is escaped.
func (s *skimmer) decode(b []byte) (rune, int) {
	if s.written && b[0] == '\\' {
		return s.unwritten(b)
	}
	if !s.json || b[0] != '\\' || len(b) < 2 {
		return utf8.DecodeRune(b)
	}
	switch b[1] {
	case 'n', 't', 'r', 'b', 'f':
		return ' ', 2
	case 'u':
		if len(b) < 6 {
			return -1, len(b)
		}
		r, ok := hex4(b[2:6])
		if !ok {
			return '\\', 1
		}
		if r >= 0xd800 && r < 0xdc00 && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if low, ok := hex4(b[8:12]); ok && low >= 0xdc00 && low < 0xe000 {
				return (r-0xd800)<<10 + (low - 0xdc00) + 0x10000, 12
			}
		}
		return r, 6
	}
	return rune(b[1]), 2 // \" \\ \/
}

func hex4(b []byte) (r rune, ok bool) {
	for _, c := range b {
		d := strings.IndexByte("0123456789abcdef", c|0x20)
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// ignored reports whether a character is left out: white space, and what is not
// seen on a screen.
func ignored(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7f
	}
	return unicode.IsSpace(r) || unicode.IsControl(r) ||
		unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// maxSequence bounds an escape sequence. The display of agentctl has the same rules.
const maxSequence = 256

// sequence returns the length of the escape sequence in b after its ESC. For one that does
// not end within its line only the ESC counts.
func (s *skimmer) sequence(b []byte) int {
	b = b[:min(len(b), maxSequence)]
	if len(b) == 0 {
		return 0
	}
	switch c := b[0]; {
	case c == '[':
		for i, c := range b[1:] {
			if c >= 0x40 && c <= 0x7e {
				return i + 2
			} else if c < 0x20 || c > 0x7e {
				return 0
			}
		}
	case strings.IndexByte("]PX^_", c) >= 0:
		for _, end := range s.ends() {
			if i := bytes.Index(b, []byte(end)); i >= 0 && bytes.IndexByte(b[:i], '\n') < 0 {
				return i + len(end)
			}
		}
	case c >= ' ' && c <= '/': // as that for a character set
		for i, c := range b[1:] {
			if c >= '0' && c <= '~' {
				return i + 2
			} else if c < ' ' || c > '/' {
				return 0
			}
		}
	case c >= 0x40 && c <= 0x5f && !(s.json && c == '\\'), c == 'c', c == '7', c == '8', c == '=', c == '>':
		return 1
	}
	return 0
}

// ends are what ends a string of a terminal: BEL, or ESC and a backslash.
func (s *skimmer) ends() []string {
	if s.json {
		return []string{`\u0007`, `\u001b\\`}
	}
	return []string{"\a", "\x1b\\"}
}

// unfinished returns the start of an incomplete escape sequence or character; len(b) if
// there is none.
func unfinished(b []byte) int {
	at := len(b)
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				at = len(b) - n
			}
			break
		}
	}
	if esc := bytes.LastIndexByte(b[max(0, len(b)-maxSequence):], 0x1b); esc >= 0 {
		esc += max(0, len(b)-maxSequence)
		if s := (&skimmer{}); s.sequence(b[esc+1:]) == 0 && bytes.IndexByte(b[esc:], '\n') < 0 {
			at = min(at, esc)
		}
	}
	return at
}
