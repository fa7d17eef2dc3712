// Package safetext shows untrusted text to a person: everything in the text can be seen, and a terminal obeys none of it.
//
// Model output, tool output, file content, file names, error messages of servers and fields of objects are
// untrusted text. Every program of this module that shows such text to a person passes it through Visible.
package safetext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Keep says which characters Visible leaves as they are.
type Keep uint8

const (
	// Lines keeps line feeds.
	Lines Keep = 1 << iota
	// Tabs keeps tabs.
	Tabs
	// Writing keeps what ordinary prose needs: spaces other than U+0020, and the
	// joiners and variation selectors of emoji and of scripts that are written
	// with them. Without it these are named, too, because a shell does not treat
	// them as a reader does.
	Writing
)

// Prose shows text of several lines that is not approved word by word.
const Prose = Lines | Tabs | Writing

// Visible returns s with every character named that a person would not see or
// that a terminal would obey: control characters (the start of every escape
// sequence among them), characters without a shape, characters that turn the
// direction of writing, and bytes that are not UTF-8. A name is <U+202E> or
// <byte FF>. Nothing is removed, so that nothing can be hidden.
func Visible(s string, keep Keep) string {
	if plain(s, keep) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	before := rune(-1) // the character before, as it was written
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "<byte %02X>", s[i])
			r = '>'
		case Hidden(r, keep) && (keep&Writing == 0 || !joined(before, r, s[i+n:])):
			fmt.Fprintf(&b, "<U+%04X>", r)
			r = '>'
		default:
			b.WriteString(s[i : i+n])
		}
		before = r
		i += n
	}
	return b.String()
}

// plain is the quick way out for text that needs no change.
func plain(s string, keep Keep) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && (c != '\n' || keep&Lines == 0) && (c != '\t' || keep&Tabs == 0) {
			return false
		}
	}
	return true
}

// Hidden reports whether a person would not see r, or a terminal would obey it.
func Hidden(r rune, keep Keep) bool {
	switch {
	case r == '\n':
		return keep&Lines == 0
	case r == '\t':
		return keep&Tabs == 0
	case unicode.Is(unicode.Zs, r) && r != ' ':
		return keep&Writing == 0
	}
	return !unicode.IsPrint(r) || unicode.In(r, blank)
}

// blank are letters and marks that show nothing.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034F, Hi: 0x034F, Stride: 1},
		{Lo: 0x115F, Hi: 0x1160, Stride: 1},
		{Lo: 0x17B4, Hi: 0x17B5, Stride: 1},
		{Lo: 0x180B, Hi: 0x180F, Stride: 1},
		{Lo: 0x2800, Hi: 0x2800, Stride: 1},
		{Lo: 0x3164, Hi: 0x3164, Stride: 1},
		{Lo: 0xFE00, Hi: 0xFE0F, Stride: 1},
		{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0xE0100, Hi: 0xE01EF, Stride: 1}},
}

const (
	zeroWidthNonJoiner = 0x200C
	zeroWidthJoiner    = 0x200D
	textStyle          = 0xFE0E
	emojiStyle         = 0xFE0F
	keycap             = 0x20E3
)

// joined reports whether r is one joiner or variation selector in a place where
// writing needs it: between two letters of a script that joins, between the
// parts of an emoji, or behind a symbol.
func joined(before, r rune, rest string) bool {
	after, _ := utf8.DecodeRuneInString(rest)
	switch r {
	case zeroWidthNonJoiner:
		return joining(before) && joining(after)
	case zeroWidthJoiner:
		return joining(before) && joining(after) || (symbol(before) || before == emojiStyle) && symbol(after)
	case emojiStyle, textStyle:
		return symbol(before) || after == keycap && strings.ContainsRune("0123456789#*", before)
	}
	return false
}

// joining reports whether r belongs to a script whose spelling uses joiners.
func joining(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
		unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala,
		unicode.Khmer, unicode.Myanmar, unicode.Tibetan) && (unicode.IsLetter(r) || unicode.IsMark(r))
}

// symbol reports whether r can be part of an emoji: a symbol or a modifier of
// its skin colour.
func symbol(r rune) bool {
	return r > 0x7f && r != utf8.RuneError && (unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) || unicode.Is(unicode.Sm, r) || unicode.Is(unicode.Po, r))
}

// Head returns the first line of s, named as in Visible, and behind it how many
// lines follow: "make … (+3 lines)". A first line alone never represents all.
func Head(s string) string {
	s = strings.TrimSpace(s)
	line, rest, more := strings.Cut(s, "\n")
	line = strings.TrimSpace(strings.ReplaceAll(Visible(strings.TrimSuffix(line, "\r"), Tabs|Writing), "\t", " "))
	if !more {
		return line
	}
	n := strings.Count(rest, "\n") + 1
	if n == 1 {
		return line + More + "1 line)"
	}
	return line + More + strconv.Itoa(n) + " lines)"
}

// More begins what Head puts behind a first line.
const More = " … (+"

// Complete returns how much of s can be passed to Visible now when more text will
// follow: the rest, a few bytes at most, is a character whose meaning depends on
// what comes next.
func Complete(s string) int {
	const most = 64 // no emoji is longer
	end := len(s)
	for end > 0 && len(s)-end < most {
		r, n := utf8.DecodeLastRuneInString(s[:end])
		switch {
		case r == utf8.RuneError && n == 1 && !utf8.FullRuneInString(s[lastStart(s[:end]):end]), r == '\r', joiner(r):
			// it belongs to what follows, or to what is before it
		case symbol(r), joining(r):
			if before, _ := utf8.DecodeLastRuneInString(s[:end-n]); !joiner(before) && !unicode.Is(unicode.Sk, r) {
				return end - n
			}
		default:
			return end
		}
		end -= n
	}
	return end
}

// lastStart is where the last, perhaps incomplete, character of s begins.
func lastStart(s string) int {
	i := len(s) - 1
	for i > 0 && len(s)-i < utf8.UTFMax && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

func joiner(r rune) bool {
	return r == zeroWidthJoiner || r == zeroWidthNonJoiner || r == emojiStyle || r == textStyle
}
