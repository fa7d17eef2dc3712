package display

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns text that a terminal shows and does not obey. Escape sequences,
// control characters and characters that turn or hide text are gone; line
// breaks and tabs stay, and a carriage return is a line break, because on a
// terminal it would let the rest of a line cover its start.
func Clean(s string) string {
	if harmless(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\x1b':
			size = sequence(s[i:])
		case r == '\r':
			if !strings.HasPrefix(s[i+1:], "\n") {
				b.WriteByte('\n')
			}
		case r == '\n' || r == '\t' || !hidden(r):
			b.WriteRune(r) // U+FFFD for a byte that is no UTF-8
		}
		i += size
	}
	return b.String()
}

// Line returns text as one cleaned line: every run of white space is one space.
func Line(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

func harmless(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}

// hidden says whether a character is left out. The joiners U+200C and U+200D
// stay: scripts and emoji need them, and they move nothing.
func hidden(r rune) bool {
	switch {
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
		return true
	case r == 0x180e, r == 0x200b, r == 0xfeff, r == 0x2028, r == 0x2029,
		r >= 0x2060 && r <= 0x206f, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// maxSequence bounds an escape sequence: whatever is longer was made to hide text.
const maxSequence = 256

// sequence returns the length of the escape sequence s starts with. One that
// does not end within its line is not believed: only its first byte counts, so
// that an open sequence cannot swallow the text behind it.
func sequence(s string) int {
	if len(s) < 2 {
		return 1
	}
	rest := s[2:min(len(s), maxSequence)]
	switch c := s[1]; {
	case c == '[':
		for i := range len(rest) {
			if b := rest[i]; b >= 0x40 && b <= 0x7e {
				return 2 + i + 1
			} else if b < 0x20 || b > 0x7e {
				return 1
			}
		}
	case strings.IndexByte("]PX^_", c) >= 0: // strings, ended by BEL or ESC \
		for i := range len(rest) {
			switch {
			case rest[i] == '\a':
				return 2 + i + 1
			case rest[i] == '\n':
				return 1
			case rest[i] == '\x1b' && strings.HasPrefix(rest[i+1:], `\`):
				return 2 + i + 2
			}
		}
	case c >= 0x40 && c <= 0x5f || c == 'c' || c == '7' || c == '8' || c == '=' || c == '>':
		return 2
	}
	return 1
}
