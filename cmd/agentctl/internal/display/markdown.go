package display

import "strings"

// markdown shows Markdown as it comes. A line is shown as it is written while it is not
// complete, and with weight and colour then; without colour it stays as it is written, which
// people read as well.
type markdown struct {
	s       *Screen
	partial string
	fence   string // what ends the block of code; "" outside of one
}

// add returns what a piece of the text adds to the screen.
func (m *markdown) add(text string) string {
	var out strings.Builder
	for piece := range strings.Lines(text) {
		line, ended := strings.CutSuffix(piece, "\n")
		m.partial += line
		if !ended {
			out.WriteString(piece)
			continue
		}
		if styled := m.line(m.partial); styled != m.partial && m.s.Live {
			out.WriteString("\r\x1b[K" + styled + "\n")
		} else {
			out.WriteString(piece)
		}
		m.partial = ""
	}
	return out.String()
}

// whole returns a text that is complete.
func (m *markdown) whole(text string) string {
	var out strings.Builder
	for line := range strings.Lines(endLine(text)) {
		out.WriteString(m.line(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return out.String()
}

// line is a line as it is shown.
func (m *markdown) line(text string) string {
	trimmed := strings.TrimSpace(text)
	mark := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`~"))]
	switch {
	case !m.s.Color:
		return text
	case m.fence != "":
		if strings.HasPrefix(mark, m.fence) && trimmed == mark {
			m.fence = ""
			return m.s.paint(dim, text)
		}
		return m.s.paint(cyan, text)
	case strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~"):
		m.fence = mark[:3]
		return m.s.paint(dim, text)
	case strings.HasPrefix(trimmed, "> "):
		return m.s.paint(dim, text)
	}
	if level := len(trimmed) - len(strings.TrimLeft(trimmed, "#")); level > 0 && level <= 6 && strings.HasPrefix(trimmed[level:], " ") {
		return m.s.paint(bold, text)
	}
	return m.inline(text)
}

// inline gives code its colour and strong words their weight.
func (m *markdown) inline(text string) string {
	var out strings.Builder
	for text != "" {
		i := strings.IndexAny(text, "`*")
		if i < 0 {
			break
		}
		mark, st := "`", cyan
		if text[i] == '*' {
			mark, st = "**", bold
		}
		inner, rest, ok := strings.Cut(text[min(len(text), i+len(mark)):], mark)
		if !strings.HasPrefix(text[i:], mark) || !ok || inner == "" || inner[0] == ' ' {
			out.WriteString(text[:i+1])
			text = text[i+1:]
			continue
		}
		out.WriteString(text[:i] + m.s.paint(st, inner))
		text = rest
	}
	return out.String() + text
}
