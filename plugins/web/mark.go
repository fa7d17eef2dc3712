package web

import (
	"bytes"
	"slices"
	"strings"
)

// mark is an inline element: a sign around its text, or a link.
type mark struct {
	sign string
	href string
	link bool
	at   int
}

// mark opens an emphasis.
func (w *writer) mark(sign string) {
	if w.plain || w.pre > 0 {
		sign = ""
	}
	w.open(mark{sign: sign})
}

func (w *writer) open(m mark) {
	if len(w.marks) >= maxDepth {
		return
	}
	m.at = -1
	w.marks = append(w.marks, m)
	w.late++
}

// endMark closes it, and forgets it if it had no text.
func (w *writer) endMark(sign string) {
	if w.plain || w.pre > 0 {
		sign = ""
	}
	n := len(w.marks)
	if n == 0 || w.marks[n-1].link || w.marks[n-1].sign != sign {
		return
	}
	m := w.marks[n-1]
	w.marks = w.marks[:n-1]
	if w.late > 0 {
		w.late--
		return
	}
	if m.at > len(w.out)-len(m.sign) {
		return
	}
	if bytes.IndexByte(w.out[m.at:], '\n') >= 0 { // a mark holds for one paragraph
		w.out = slices.Delete(w.out, m.at, m.at+len(m.sign))
		return
	}
	if m.sign == "`" && bytes.IndexByte(w.out[m.at+1:], '`') >= 0 {
		w.out = append(slices.Insert(w.out, m.at+1, '`', ' '), " `"...)
	}
	w.out = append(w.out, m.sign...)
}

// settle forgets marks that are open: they do not reach into a code block.
func (w *writer) settle() {
	w.marks, w.late = w.marks[:len(w.marks)-w.late], 0
}

func (w *writer) link(href string) {
	w.open(mark{link: href != "" && !w.plain && w.pre == 0, href: href})
}

func (w *writer) endLink() {
	n := len(w.marks)
	if n == 0 {
		return
	}
	m := w.marks[n-1]
	if !m.link && m.sign != "" {
		return
	}
	w.marks = w.marks[:n-1]
	if w.late > 0 {
		w.late--
		return
	}
	if !m.link || m.at >= len(w.out) {
		return
	}
	if bytes.IndexByte(w.out[m.at:], '\n') >= 0 {
		w.out = slices.Delete(w.out, m.at, m.at+1)
		w.out = append(append(append(w.out, " ("...), address(m.href)...), ')')
		return
	}
	w.out = append(append(append(w.out, "]("...), address(m.href)...), ')')
}

// address is a link's as Markdown has it.
func address(href string) string {
	if !strings.ContainsAny(href, " ()<>|") {
		return href
	}
	return strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "|", "%7C").Replace(href)
}

func (w *writer) image(alt, src string) {
	alt = visible(alt)
	if alt == "" || w.pre > 0 {
		return
	}
	if w.plain || src == "" {
		w.text([]byte(alt))
		return
	}
	alt = strings.NewReplacer("[", "", "]", "", "|", "", "\\", "").Replace(alt)
	w.literal("![" + alt + "](" + address(src) + ")")
}
