package lineedit

import (
	"unicode/utf8"
)

// key is what a person has pressed: a rune, or one of the names below.
type key int

// The keys that are no characters. They lie above all runes.
const (
	keyUp key = utf8.MaxRune + 1 + iota
	keyDown
	keyLeft
	keyRight
	keyHome
	keyEnd
	keyDelete
	keyWordLeft
	keyWordRight
	keyNewline
	keyPaste
	keyPasteEnd
	keyUnknown
)

// control is the key of a letter together with Ctrl.
func control(letter byte) key { return key(letter & 0x1f) }

const (
	escape    = 0x1b
	backspace = 0x7f
)

// maxSequence bounds a sequence of a terminal, in bytes: what is longer is none.
const maxSequence = 32

// nextKey reads the first key of what a terminal has sent. Its size is 0 while the key is
// not complete.
func nextKey(b []byte) (k key, size int) {
	switch {
	case len(b) == 0:
		return 0, 0
	case b[0] != escape:
		if !utf8.FullRune(b) {
			return 0, 0
		}
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return keyUnknown, 1
		}
		return key(r), n
	case len(b) == 1:
		return 0, 0
	case b[1] == '[' || b[1] == 'O':
		return sequence(b)
	}
	switch b[1] {
	case '\r', '\n':
		return keyNewline, 2
	case 'b':
		return keyWordLeft, 2
	case 'f':
		return keyWordRight, 2
	case escape:
		return keyUnknown, 1
	}
	return keyUnknown, 2
}

// sequence reads a sequence that begins with ESC [ or ESC O.
func sequence(b []byte) (k key, size int) {
	end := 2
	for end < len(b) && (b[end] < 0x40 || b[end] > 0x7e) {
		if b[end] == escape { // another one begins: this one is cut off
			return keyUnknown, end
		}
		if end++; end > maxSequence {
			return keyUnknown, 2
		}
	}
	if end == len(b) {
		return 0, 0
	}
	k, ok := sequences[string(b[2:end+1])]
	if !ok {
		k = keyUnknown
	}
	return k, end + 1
}

// sequences are those of the terminals in use, without what they begin with.
var sequences = map[string]key{
	"A": keyUp, "B": keyDown, "C": keyRight, "D": keyLeft, "H": keyHome, "F": keyEnd,
	"1~": keyHome, "7~": keyHome, "4~": keyEnd, "8~": keyEnd, "3~": keyDelete,
	"1;5D": keyWordLeft, "1;3D": keyWordLeft, "1;5C": keyWordRight, "1;3C": keyWordRight, "13;2u": keyNewline, "27;2;13~": keyNewline,
	"200~": keyPaste, "201~": keyPasteEnd,
}
