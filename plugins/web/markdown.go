package web

import (
	"bytes"
	"strconv"
	"strings"
)

// writer writes Markdown from the beginning to the end. Space between words and lines is
// written when a word follows it, and so are the marks of emphasis and links: nothing is
// left of elements without a text.
type writer struct {
	out   []byte
	plain bool

	// space: a blank is due; lines: that many ends of lines are.
	space bool
	lines int

	// prefix begins every line: that of quotes and items; lead begins the next one instead.
	prefix, lead string
	outer        []string // prefixes around
	// gap begins empty lines that are due: what the lines on both sides begin with.
	gap string
	// before is the lead before a heading.
	before string
	lists  []list

	marks []mark
	// late is how many marks, the last ones, are not written yet.
	late int

	// pre counts code blocks, fenceAt is where the block begins, lang its language.
	// fresh is set at the beginning of a line of the block.
	pre     int
	fenceAt int
	lang    string
	fresh   bool
	// codes counts elements of code within a line.
	codes int

	tables []table
}

type list struct {
	ordered bool
	next    int
	// loose is the prefix around the list.
	prefix string
}

// maxNested bounds the prefixes of a line: the output grows with the page only.
const maxNested = 16

// flat reports whether the text is in a cell: all in one line.
func (w *writer) flat() bool {
	n := len(w.tables)
	return n > 0 && !w.tables[n-1].layout && w.tables[n-1].inRow
}

// line and block end a line, and a paragraph.
func (w *writer) line()  { w.feed(1) }
func (w *writer) block() { w.feed(2) }

func (w *writer) feed(n int) {
	if w.flat() {
		w.space = true
		return
	}
	switch {
	case w.pre == 0:
		if w.lines == 0 || len(w.prefix) < len(w.gap) {
			w.gap = w.prefix
		}
		w.lines = max(w.lines, n)
		w.space = false
	case len(w.out) > w.fenceAt && !w.fresh:
		w.newline()
	}
}

func (w *writer) lineBreak() {
	if w.pre > 0 && !w.flat() {
		w.flush()
		w.newline()
		return
	}
	w.line()
}

func (w *writer) newline() {
	w.fresh = true
	w.out = append(w.out, '\n')
	w.out = append(w.out, w.prefix...)
}

// flush writes the ends of lines, blanks and marks that are due before a word.
func (w *writer) flush() {
	if w.lines > 0 {
		if len(w.out) > 0 {
			for range w.lines - 1 {
				w.out = append(w.out, '\n')
				w.out = append(w.out, strings.TrimRight(w.gap, " ")...)
			}
			w.out = append(w.out, '\n')
		}
		if w.lead != "" {
			w.out = append(w.out, w.lead...)
		} else {
			w.out = append(w.out, w.prefix...)
		}
		w.lead, w.lines, w.space = "", 0, false
	} else if len(w.out) == 0 && w.lead != "" {
		w.out = append(w.out, w.lead...)
		w.lead = ""
	}
	if w.space && len(w.out) > 0 {
		if last := w.out[len(w.out)-1]; last != ' ' && last != '\n' {
			w.out = append(w.out, ' ')
		}
	}
	w.space = false
	for i := len(w.marks) - w.late; i < len(w.marks); i++ {
		w.marks[i].at = len(w.out)
		if w.marks[i].link {
			w.out = append(w.out, '[')
		} else {
			w.out = append(w.out, w.marks[i].sign...)
		}
	}
	w.late = 0
}

// literal writes what is not a text of the page.
func (w *writer) literal(s string) {
	w.flush()
	w.out = append(w.out, s...)
	w.fresh = false
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// text writes words, with one blank between them.
func (w *writer) text(t []byte) {
	if w.pre > 0 && !w.flat() {
		w.code(t)
		return
	}
	for len(t) > 0 {
		i := 0
		for i < len(t) && blank(t[i]) {
			i++
		}
		if i > 0 && w.lines == 0 {
			w.space = true
		}
		t = t[i:]
		if len(t) == 0 {
			return
		}
		n := 0
		for n < len(t) && !blank(t[n]) {
			n++
		}
		begins := w.lines > 0 || len(w.out) == 0
		w.flush()
		w.word(t[:n], begins)
		t = t[n:]
	}
}

// word writes a word, with a backslash before what would be read as a mark.
func (w *writer) word(t []byte, begins bool) {
	if w.plain || w.codes > 0 {
		w.out = append(w.out, t...)
		return
	}
	if begins && starts(t) {
		w.out = append(w.out, '\\')
	}
	from := 0
	for i, c := range t {
		switch c {
		case '*', '`', '<', '\\':
		case '|':
			if !w.flat() {
				continue
			}
		default:
			continue
		}
		w.out = append(w.out, t[from:i]...)
		w.out = append(w.out, '\\')
		from = i
	}
	w.out = append(w.out, t[from:]...)
}

// starts reports whether a word at the beginning of a line would make it something else
// than text.
func starts(t []byte) bool {
	switch t[0] {
	case '#', '>', '+', '=', '~':
		return true
	case '-':
		return len(bytes.Trim(t, "-")) == 0
	}
	return false
}

// code writes lines of a code block as they are.
func (w *writer) code(t []byte) {
	for len(t) > 0 {
		line, rest, more := bytes.Cut(t, []byte{'\n'})
		if len(line) > 0 || len(w.out) > w.fenceAt {
			if len(line) > 0 {
				w.flush()
				w.out = append(w.out, bytes.TrimSuffix(line, []byte{'\r'})...)
				w.fresh = false
			}
			if more {
				w.newline()
			}
		}
		t = rest
	}
}

func (w *writer) heading(level int) {
	w.block()
	w.before = w.lead
	if !w.plain && !w.flat() && w.pre == 0 {
		w.lead = w.lead + w.orPrefix() + strings.Repeat("#", level) + " "
	}
}

// endHeading forgets a heading without a text.
func (w *writer) endHeading() {
	if w.lead != "" {
		w.lead = w.before
	}
	w.block()
}

// orPrefix is the prefix of the next line, unless something leads it already.
func (w *writer) orPrefix() string {
	if w.lead != "" {
		return ""
	}
	return w.prefix
}

func (w *writer) rule() {
	if w.flat() {
		return
	}
	w.block()
	if !w.plain && w.pre == 0 {
		w.literal("---")
		w.block()
	}
}

// nest makes a prefix longer, and restores it.
func (w *writer) nest(more string) {
	w.outer = append(w.outer, w.prefix)
	if len(w.outer) <= maxNested {
		w.prefix += more
	}
}

func (w *writer) unnest() {
	if n := len(w.outer); n > 0 {
		w.prefix, w.outer = w.outer[n-1], w.outer[:n-1]
	}
	if len(w.prefix) < len(w.gap) {
		w.gap = w.prefix
	}
	w.lead = ""
}

func (w *writer) quote() {
	w.block()
	if w.lead != "" { // an item begins with it
		w.lead += "> "
	}
	w.nest("> ")
}

func (w *writer) endQuote() {
	w.block()
	w.unnest()
}

func (w *writer) list(start int, ordered bool) {
	if len(w.lists) > 0 {
		w.line()
	} else {
		w.block()
	}
	w.lists = append(w.lists, list{ordered: ordered, next: start, prefix: w.prefix})
}

func (w *writer) endList() {
	if n := len(w.lists); n > 0 {
		w.lists = w.lists[:n-1]
	}
	if len(w.lists) > 0 {
		w.line()
	} else {
		w.block()
	}
}

func (w *writer) item() {
	w.line()
	sign := "- "
	if n := len(w.lists); n > 0 && w.lists[n-1].ordered {
		sign = strconv.Itoa(w.lists[n-1].next) + ". "
		w.lists[n-1].next++
	}
	if !w.flat() {
		w.lead = w.orPrefixOf(w.lead) + sign
	}
	w.nest(strings.Repeat(" ", len(sign)))
}

// orPrefixOf continues a lead, or begins one.
func (w *writer) orPrefixOf(lead string) string {
	if lead != "" && len(lead) < 4*maxNested {
		return lead
	}
	return w.prefix
}

func (w *writer) endItem() {
	w.line()
	w.unnest()
}

func (w *writer) fence(lang string) {
	w.pre++
	if w.pre > 1 || w.flat() {
		return
	}
	w.pre = 0
	w.block()
	w.pre = 1
	w.lang = lang
	w.settle()
	w.flush()
	w.fenceAt = len(w.out)
}

// endFence writes the fences around a block: longer than any in it, so that its text
// cannot end it.
func (w *writer) endFence() {
	if w.pre == 0 {
		return
	}
	if w.pre--; w.pre > 0 || w.flat() {
		return
	}
	body := strings.TrimRight(string(w.out[min(w.fenceAt, len(w.out)):]), " \n")
	w.out = w.out[:min(w.fenceAt, len(w.out))]
	if body != "" {
		sign := "```"
		for strings.Contains(body, sign) {
			sign += "`"
		}
		if !w.plain {
			w.out = append(w.out, sign...)
			w.out = append(w.out, w.lang...)
			w.newline()
		}
		w.out = append(w.out, body...)
		if !w.plain {
			w.newline()
			w.out = append(w.out, sign...)
		}
	}
	w.lines, w.gap, w.space, w.lang = 2, w.prefix, false, ""
}
