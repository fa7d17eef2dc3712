package lineedit

import (
	"slices"
	"strings"
	"unicode"
)

// Line is what a person has entered. It may have several lines.
type Line struct {
	Text string
	// Pasted are the parts of it that were pasted, in bytes.
	Pasted []Span
}

// Same reports whether two lines are the same, also in what was pasted.
func (l Line) Same(m Line) bool { return l.Text == m.Text && slices.Equal(l.Pasted, m.Pasted) }

// Span is a part of a text, from a byte to before another one.
type Span struct{ From, To int }

// maxLine bounds what is entered at once, in characters.
const maxLine = 1 << 20

// cell is one character of the buffer.
type cell struct {
	r      rune
	pasted bool
}

// buffer is the text that is being written, with the cursor before one of its characters.
type buffer struct {
	cells []cell
	at    int
}

func (b *buffer) insert(r rune, pasted bool) {
	if len(b.cells) >= maxLine || r == 0 {
		return
	}
	b.cells = slices.Insert(b.cells, b.at, cell{r, pasted})
	b.at++
}

// set replaces the text; what was pasted in it stays pasted.
func (b *buffer) set(l Line) {
	b.cells = b.cells[:0]
	for at, r := range l.Text {
		pasted := slices.ContainsFunc(l.Pasted, func(s Span) bool { return s.From <= at && at < s.To })
		b.cells = append(b.cells, cell{r, pasted})
	}
	b.at = len(b.cells)
}

// line is the text so far.
func (b *buffer) line() (l Line) {
	var text strings.Builder
	for _, c := range b.cells {
		from := text.Len()
		text.WriteRune(c.r)
		if !c.pasted {
			continue
		}
		if n := len(l.Pasted); n > 0 && l.Pasted[n-1].To == from {
			l.Pasted[n-1].To = text.Len()
		} else {
			l.Pasted = append(l.Pasted, Span{from, text.Len()})
		}
	}
	l.Text = text.String()
	return l
}

// before is the text before the cursor.
func (b *buffer) before() string {
	head := buffer{cells: b.cells[:b.at]}
	return head.line().Text
}

// remove takes out the characters between two places.
func (b *buffer) remove(from, to int) {
	b.cells = slices.Delete(b.cells, from, to)
	b.at = from
}

func (b *buffer) move(by int) { b.at = min(max(b.at+by, 0), len(b.cells)) }

// lineStart and lineEnd are those of the line that holds the cursor.
func (b *buffer) lineStart() int {
	i := b.at
	for i > 0 && b.cells[i-1].r != '\n' {
		i--
	}
	return i
}

func (b *buffer) lineEnd() int {
	i := b.at
	for i < len(b.cells) && b.cells[i].r != '\n' {
		i++
	}
	return i
}

// wordLeft and wordRight are the places of the words beside the cursor.
func (b *buffer) wordLeft() int {
	i := b.at
	for i > 0 && unicode.IsSpace(b.cells[i-1].r) {
		i--
	}
	for i > 0 && !unicode.IsSpace(b.cells[i-1].r) {
		i--
	}
	return i
}

func (b *buffer) wordRight() int {
	i := b.at
	for i < len(b.cells) && unicode.IsSpace(b.cells[i].r) {
		i++
	}
	for i < len(b.cells) && !unicode.IsSpace(b.cells[i].r) {
		i++
	}
	return i
}

// up and down move the cursor by a line; they are false in the first and the last one.
func (b *buffer) up() bool {
	start := b.lineStart()
	if start == 0 {
		return false
	}
	column := b.at - start
	b.at = start - 1
	b.at = min(b.lineStart()+column, start-1)
	return true
}

func (b *buffer) down() bool {
	end, column := b.lineEnd(), b.at-b.lineStart()
	if end == len(b.cells) {
		return false
	}
	b.at = end + 1
	b.at = min(b.at+column, b.lineEnd())
	return true
}
