package manifest

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// MaxShown is how many findings are printed when the caller does not say.
const MaxShown = 20

// Write prints findings as a compiler does: the position and the message, the line, a
// caret under the column, and a suggestion. At most limit findings are printed (0:
// MaxShown), errors before warnings when not all fit.
func (f Findings) Write(w io.Writer, limit int) error {
	if limit <= 0 {
		limit = MaxShown
	}
	var b strings.Builder
	shown := f.shown(limit)
	for _, x := range shown {
		x.write(&b)
	}
	if more := len(f) - len(shown); more > 0 {
		fmt.Fprintf(&b, "and %d more: agentctl validate prints all\n", more)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shown picks what fits: a flood of warnings must not hide an error.
func (f Findings) shown(limit int) Findings {
	if len(f) <= limit {
		return f
	}
	errors, _ := f.Count()
	warnings := max(limit-errors, 0)
	picked := make(Findings, 0, limit)
	for _, x := range f {
		if len(picked) == limit {
			break
		}
		if x.Severity != Error {
			if warnings == 0 {
				continue
			}
			warnings--
		}
		picked = append(picked, x)
	}
	return picked
}

func (f Finding) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s: ", f.Severity)
	if f.Position.File != "" {
		fmt.Fprintf(b, "%s: ", Sanitize(f.Position.String()))
	}
	if f.Path != "" {
		fmt.Fprintf(b, "%s: ", Sanitize(f.Path))
	}
	fmt.Fprintf(b, "%s\n", Sanitize(f.Message))
	if f.Snippet != "" {
		fmt.Fprintf(b, "    %s\n    %s^\n", f.Snippet, strings.Repeat(" ", f.caret))
	}
	if f.Suggestion != "" {
		fmt.Fprintf(b, "    %s\n", Sanitize(f.Suggestion))
	}
	if f.See != "" {
		fmt.Fprintf(b, "    see: %s\n", Sanitize(f.See))
	}
}

// snippetWidth is the number of columns of a line that are shown.
const snippetWidth = 120

// cut splits a line before a column.
func cut(line string, col int) (before, rest string) {
	at := 0
	for n := 1; at < len(line) && n < col; n++ {
		_, size := utf8.DecodeRuneInString(line[at:])
		at += size
	}
	return line[:at], line[at:]
}

// snippet makes a line safe for a terminal and returns it with the width of the part
// before the position. A long line is cut around the position.
func snippet(before, rest string) (string, int) {
	head, tail := Sanitize(before), Sanitize(strings.TrimRight(rest, " \t\r"))
	if columns(head) > snippetWidth/2 {
		runes := []rune(head)
		cut := max(0, len(runes)-snippetWidth/4)
		head = "…" + string(runes[cut:])
	}
	room := snippetWidth - columns(head)
	if runes := []rune(tail); len(runes) > room {
		tail = string(runes[:max(room, 0)]) + "…"
	}
	return head + tail, columns(head)
}

// columns is the width of a sanitised text on a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

func wide(r rune) bool {
	k := width.LookupRune(r).Kind()
	return k == width.EastAsianWide || k == width.EastAsianFullwidth
}

// Sanitize makes what a manifest holds safe to show: control and escape
// characters, direction marks and other invisible characters are written as
// \u202e, tabs as two blanks.
func Sanitize(s string) string {
	if !strings.ContainsFunc(s, hidden) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\t':
			b.WriteString("  ")
		case hidden(r):
			if r > 0xffff {
				fmt.Fprintf(&b, `\U%08x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a character does not show as itself: controls (Cc),
// format characters such as bidi marks and zero-width blanks (Cf), line and
// paragraph separators, private use and surrogates.
func hidden(r rune) bool {
	if r < 0x7f {
		return r < 0x20
	}
	return r < 0xa0 || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs)
}
