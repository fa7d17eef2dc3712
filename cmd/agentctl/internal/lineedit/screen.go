package lineedit

import (
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
)

// takeBack erases a line of output that is not complete.
const takeBack = "\r\x1b[K"

// screen is what a terminal shows of the live block, and what goes above it.
type screen struct {
	out *os.File
	// above is complete output that is not yet written, partial is the last line of output
	// while it is not complete.
	above   strings.Builder
	partial string
	// rows are the widths of the drawn rows of the block down to that of the cursor.
	rows []int
}

type size struct{ columns, rows int }

// The least that a terminal is taken for: one that is not known, or too narrow to write on.
const (
	leastColumns = 20
	leastRows    = 4
)

func (s *screen) size() size {
	w, err := unix.IoctlGetWinsize(int(s.out.Fd()), unix.TIOCGWINSZ)
	if err != nil || w.Col == 0 {
		return size{80, 24}
	}
	return size{max(int(w.Col), leastColumns), max(int(w.Row), leastRows)}
}

// add takes output.
func (s *screen) add(text string) {
	for {
		before, rest, back := strings.Cut(text, takeBack)
		if i := strings.LastIndexByte(before, '\n'); i >= 0 {
			s.above.WriteString(s.partial + before[:i+1])
			s.partial, before = "", before[i+1:]
		}
		s.partial += before
		if !back {
			break
		}
		s.partial, text = "", rest
	}
	if len(s.partial) > longPartial { // it is not drawn again and again
		s.above.WriteString(s.partial + "\n")
		s.partial = ""
	}
}

// longPartial is how much of a line of output is kept while it is not complete.
const longPartial = 16 << 10

// addLine takes a line of output, which is not part of the incomplete one.
func (s *screen) addLine(text string) { s.above.WriteString(text + "\n") }

// back goes from the row of the cursor to the first of the block, as wide as the terminal is
// now, and erases it.
func (s *screen) back(columns int) string {
	if len(s.rows) == 0 {
		return "\r"
	}
	up := 0
	for i, w := range s.rows {
		n := max(1, (w+columns-1)/columns) // a terminal that became narrower has wrapped them
		if i == len(s.rows)-1 {
			n--
		}
		up += n
	}
	s.rows = nil
	if up == 0 {
		return "\r\x1b[J"
	}
	return "\r" + ansi.CursorUp(up) + "\x1b[J"
}

// erase takes the block away.
func (s *screen) erase() { s.write(s.back(s.size().columns)) }

// finish writes what is left of the output.
func (s *screen) finish() {
	text := s.above.String() + s.partial
	s.above.Reset()
	if s.partial != "" {
		text += "\n"
	}
	s.partial = ""
	s.write(text)
}

// clear empties the screen; the scrollback stays.
func (s *screen) clear() {
	s.rows = nil
	s.write("\x1b[H\x1b[2J")
}

func (s *screen) write(text string) {
	_, _ = io.WriteString(s.out, text) // a terminal that is gone shows with the next read
}

// draw writes what is new above the block, and the block.
func (s *screen) draw(prompt string, b *buffer) {
	at := s.size()
	width := at.columns - 1 // a full row leaves the cursor where terminals differ
	var out strings.Builder
	out.WriteString(s.back(at.columns))
	out.WriteString(s.above.String())
	s.above.Reset()
	rows := []string{}
	if s.partial != "" {
		rows = strings.Split(ansi.Hardwrap(s.partial, width, true), "\n")
		rows = rows[max(0, len(rows)-at.rows/2):]
	}
	written, row, column := layout(prompt, b, width)
	if most := max(2, at.rows/2-1); len(written) > most {
		from := min(max(0, row-most+1), len(written)-most)
		written, row = written[from:from+most], row-from
	}
	row += len(rows)
	rows = append(rows, written...)
	for i, r := range rows {
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(r)
		if i <= row {
			s.rows = append(s.rows, ansi.StringWidth(r))
		}
	}
	if up := len(rows) - 1 - row; up > 0 {
		out.WriteString(ansi.CursorUp(up))
	}
	out.WriteString("\r")
	if column > 0 {
		out.WriteString(ansi.CursorForward(column))
	}
	s.write(out.String())
}

// layout breaks what is being written into rows, and says where the cursor is.
func layout(prompt string, b *buffer, width int) (rows []string, row, column int) {
	var line strings.Builder
	indent := strings.Repeat(" ", ansi.StringWidth(prompt))
	line.WriteString(prompt)
	at := ansi.StringWidth(prompt)
	next := func(begin string) {
		rows = append(rows, line.String())
		line.Reset()
		line.WriteString(begin)
		at = ansi.StringWidth(begin)
	}
	for i, c := range b.cells {
		text := visible(c.r)
		n := ansi.StringWidth(text)
		if c.r != '\n' && at+n > width {
			next("")
		}
		if i == b.at {
			row, column = len(rows), at
		}
		if c.r == '\n' {
			next(indent)
			continue
		}
		line.WriteString(text)
		at += n
	}
	if b.at == len(b.cells) {
		if at >= width {
			next("")
		}
		row, column = len(rows), at
	}
	return append(rows, line.String()), row, column
}

// shown is a text on one line, with its characters as they are shown.
func shown(text string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\n", " ") {
		b.WriteString(visible(r))
	}
	return b.String()
}

// visible is how a character is shown: what would move the cursor, or hide something, is a
// dot.
func visible(r rune) string {
	switch {
	case r == '\t':
		return "    "
	case r == ' ' || unicode.IsPrint(r) || unicode.Is(unicode.Mn, r):
		return string(r)
	}
	return "·"
}
