package skill

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is a text of an author on one line of a list: without what could end the list,
// move a cursor or turn the direction of the text.
func Line(text string) string {
	if plain(text) {
		return text
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '<' || r == '>', !unicode.IsPrint(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// plain reports whether a text is such a line already.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '<' || c == '>' || c == ' ' && (i == 0 || i == len(text)-1 || text[i-1] == ' ') {
			return false
		}
	}
	return true
}

// Brief is a description on one line, of a length that a list of all has room for.
func Brief(description string) string { return shorten(Line(description), 2*maxDescription) }

// shorten cuts a line at a word, to at most so many bytes.
func shorten(line string, most int) string {
	const mark = "…"
	if len(line) <= most {
		return line
	}
	if most <= len(mark) {
		return ""
	}
	cut := most - len(mark)
	for cut > 0 && !utf8.RuneStart(line[cut]) {
		cut--
	}
	line = line[:cut]
	if at := strings.LastIndexByte(line, ' '); at > cut/2 {
		line = line[:at]
	}
	return strings.TrimRight(line, " ,;:") + mark
}

// short is a text of an author in a message.
func short(text string) string { return shorten(Line(text), 80) }
