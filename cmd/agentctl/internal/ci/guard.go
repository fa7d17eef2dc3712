package ci

import "io"

// Guard returns a writer for a job's log in which no text becomes a command of the
// system, whatever it holds and however it is cut into writes:
//
//	text                                      becomes
//	:: at the beginning of a line             : :
//	##[ anywhere                              ## [
//	section_start: or section_end: anywhere   section_start :
//
// Objects says that the text is JSON, whose values must stay the same: only ##[ is
// written differently there, as ##\u005b. The others cannot be in it, since no value begins a
// line and its strings hold no carriage return.
func Guard(w io.Writer, s System, objects bool) io.Writer {
	if s == None {
		return w
	}
	return &guard{w: w, objects: objects, begins: true}
}

type guard struct {
	w       io.Writer
	objects bool
	// begins: nothing but space was written in this line. Bytes of other than ASCII
	// characters count as space, of which there are many kinds.
	begins bool
	// colon: the line began with one colon.
	colon bool
	tail  []byte
}

// longest is the length of the longest text before the character that is changed.
const longest = len("section_start")

// Write writes the text, of which some characters are changed.
func (g *guard) Write(b []byte) (int, error) {
	out := make([]byte, 0, len(b)+16)
	for _, c := range b {
		switch {
		case g.objects:
			if c == '[' && g.after("##") {
				out = append(out, `\u005b`...)
				g.tail = append(g.tail[:0], c)
				continue
			}
		case c == ':' && (g.colon || g.after("section_start") || g.after("section_end")), c == '[' && g.after("##"):
			out = append(out, ' ')
		}
		out = append(out, c)
		switch {
		case c == '\n' || c == '\r':
			g.begins, g.colon = true, false
		case g.begins && c == ':':
			g.begins, g.colon = false, true
		case c > ' ' && c < 0x80:
			g.begins, g.colon = false, false
		default:
			g.colon = false
		}
		if g.tail = append(g.tail, c); len(g.tail) > longest {
			g.tail = g.tail[1:]
		}
	}
	if _, err := g.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// after reports whether the text so far ends with a word.
func (g *guard) after(word string) bool {
	return len(g.tail) >= len(word) && string(g.tail[len(g.tail)-len(word):]) == word
}
