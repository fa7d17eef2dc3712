package web

import (
	"strings"
	"unicode/utf8"
)

// clean removes what people do not see and terminals obey: control characters (also the
// one that begins an escape sequence), marks that turn the direction of text, invisible
// characters, and those that carry hidden messages. New lines and tabs stay.
func clean(s string) string {
	at := strange(s)
	if at < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for {
		b.WriteString(s[:at])
		_, size := utf8.DecodeRuneInString(s[at:])
		s = s[at+size:]
		if at = strange(s); at < 0 {
			b.WriteString(s)
			return b.String()
		}
	}
}

// strange is where the first character is that is not shown, or -1.
func strange(s string) int {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if unseen(r) || r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func unseen(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9f, r == 0xad: // C1 controls, soft hyphen
	case r == 0x034f, r == 0x061c, r == 0x180e, r == 0x3164, r == 0xffa0: // joiners and fillers
	case r == 0x200b, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e: // space of no width, directions
	case r >= 0x2060 && r <= 0x206f, r == 0xfeff, r >= 0xfff9 && r <= 0xfffb:
	case r >= 0xfe00 && r <= 0xfe0d, r >= 0xe0000 && r <= 0xe0fff: // variants and tags
	default:
		return false
	}
	return true
}

// visible is a text of one line without what people do not see.
func visible(s string) string {
	return strings.Join(strings.Fields(clean(strings.ToValidUTF8(s, "\uFFFD"))), " ")
}
