package approval

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// blanks are letters and marks that show nothing.
var blanks = []rune{0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}

// Visible writes a text so that a person sees everything that is in it: control
// characters, characters without a shape and those that turn the direction of
// writing are named. Newlines stay when keep is set.
func Visible(s string, keep bool) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "<byte %02X>", s[0])
		case r == '\n' && keep:
			b.WriteByte('\n')
		case hidden(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}

func hidden(r rune) bool {
	return !unicode.IsPrint(r) || slices.Contains(blanks, r) || r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF
}
