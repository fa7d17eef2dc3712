package display

import (
	"io"
	"strings"
)

// Mistakes is where findings are written: the word that begins each, error or
// warning, stands out as it does elsewhere.
func Mistakes(s *Screen) io.Writer { return mistakes{s} }

type mistakes struct{ s *Screen }

// Write writes whole lines.
func (m mistakes) Write(b []byte) (int, error) {
	var text strings.Builder
	for line := range strings.Lines(Clean(string(b))) { // they quote manifests
		for word, st := range map[string]style{"error:": red, "warning:": yellow} {
			if rest, ok := strings.CutPrefix(line, word); ok {
				line = m.s.paint(st, word) + rest
				break
			}
		}
		text.WriteString(line)
	}
	m.s.print(text.String())
	return len(b), m.s.Err()
}
