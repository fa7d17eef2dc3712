package secret

import (
	"bytes"
	"cmp"
	"slices"
	"unsafe"
)

// MinLength is the shortest value that is redacted. A shorter one would be found
// by chance in too many texts to be worth hiding.
const MinLength = 6

// fewCharacters is how much of a secret may be shown: a beginning or an end of
// this length is in many texts by chance.
const fewCharacters = 3

// Redactor replaces secrets by ***, in the forms in which programs print them:
// as they are, escaped for JSON, URLs and shells, in hex, and in base64 at any
// position of a longer text. It reads a text as a person or a later cleaner would:
// white space, line breaks, escape sequences and invisible characters inside a
// form do not hide it, nor do the lines of xxd, od and hexdump. Only Learn changes
// it. It may be used by many goroutines; nil redacts nothing.
type Redactor struct {
	learned
	// skimmed finds forms in a skimmed text. exact finds those in the original text that
	// would be too short without their white space; nil if there are none.
	skimmed, exact *matcher
}

// NewRedactor makes a Redactor of values. Values shorter than MinLength are
// left out.
func NewRedactor(values ...Value) *Redactor {
	var skimmed, exact []string
	seen := map[string]bool{}
	add := func(list *[]string, form string) {
		if len(form) >= MinLength && !seen[form] {
			seen[form] = true
			*list = append(*list, form)
		}
	}
	for _, v := range values {
		for _, f := range forms(v.Reveal()) {
			s := skimmer{b: []byte(f), reading: reading{bare: true}}
			if short := s.next(make([]byte, 0, len(f)+8), nil); len(short) >= MinLength {
				add(&skimmed, string(short))
			} else {
				add(&exact, f)
			}
			s = skimmer{b: []byte(f), reading: reading{bare: true, written: true}}
			add(&skimmed, string(s.next(make([]byte, 0, len(f)+8), nil)))
		}
	}
	r := &Redactor{skimmed: newMatcher(skimmed), exact: newMatcher(exact)}
	r.declared = slices.Clone(values)
	if r.skimmed == nil && r.exact == nil {
		return nil
	}
	return r
}

// span is a part of a text.
type span struct{ start, end int }

// piece is how much of a text is skimmed at a time: an output may have 10 MB, and
// next to none holds a secret. overlap bounds how much of the text behind a piece is
// read for the end of a form that begins in it.
const (
	piece   = 32 << 10
	overlap = 256 << 10
)

// block is a skimmed piece of a text, and what follows it.
type block struct {
	text       []byte
	start, end int
	first      bool
	last       bool
}

// blocks skims a text piece by piece until use returns false.
func (r *Redactor) blocks(b []byte, how reading, use func(block) bool) {
	more := r.skimmed.longest
	buf := make([]byte, 0, min(piece, len(b))+more+4*utf8Max)
	for at := 0; at < len(b); {
		s := skimmer{b: b, at: at, reading: how}
		text := s.next(buf[:0:min(cap(buf), piece+2*utf8Max)], nil)
		next := s.at
		if next < len(b) {
			s.b = b[:min(len(b), next+overlap)]
			text = s.next(buf[:len(text):min(cap(buf), len(text)+more+2*utf8Max)], nil)
		}
		if !use(block{text: text, start: at, end: s.at, first: at == 0, last: s.at == len(b)}) {
			return
		}
		at = next
	}
}

// suspect reports whether a secret may be in a text. It is what most texts cost.
func (r *Redactor) suspect(b []byte, json bool) (found bool) {
	if r.exact != nil {
		if _, _, ok := r.exact.find(b, 0); ok {
			return true
		}
	}
	if r.skimmed == nil {
		return false
	}
	var room [maxReadings]reading
	for _, how := range readings(room[:0], b, json) {
		r.blocks(b, how, func(k block) bool {
			_, _, found = r.skimmed.find(k.text, 0)
			found = found || len(r.shortened(nil, k.text)) > 0
			return !found
		})
		if found {
			return true
		}
	}
	return false
}

const utf8Max = 4

// maxReadings is the most ways in which a text has to be read.
const maxReadings = 4

// readings appends the ways in which a text has to be read.
func readings(all []reading, b []byte, json bool) []reading {
	escapes, written := bytes.IndexByte(b, 0x1b) >= 0, bytes.IndexByte(b, '\\') >= 0
	if json {
		written = bytes.Contains(b, []byte(`\\`)) // a single one is an escape of this text
		escapes = bytes.Contains(b, []byte(`\u001b`)) || bytes.Contains(b, []byte(`\u001B`))
	}
	all = append(all, reading{json: json})
	if escapes {
		all = append(all, reading{json: json, bare: true})
	}
	if written {
		for _, how := range all {
			how.written = true
			all = append(all, how)
		}
	}
	return all
}

// secrets returns the parts of a text that hold a secret, in order and apart from
// each other. Those of edges are what is cut off at its ends, too.
func (r *Redactor) secrets(b []byte, json, lines, edges bool) []span {
	var all []span
	all = r.exactly(all, b)
	if r.skimmed != nil {
		var room [maxReadings]reading
		for _, how := range readings(room[:0], b, json) {
			r.blocks(b, how, func(k block) bool {
				hits := r.found(k.text, edges && k.first, edges && k.last)
				if len(hits) == 0 {
					return true
				}
				var p places
				again := skimmer{b: b[:k.end], at: k.start, reading: how}
				again.next(make([]byte, 0, len(k.text)+2*utf8Max), &p)
				for _, h := range hits {
					all = append(all, span{p.start[h.start], p.end[h.end-1]})
				}
				return true
			})
		}
		if lines {
			dumps(b, func(bytes []dumped) { all = r.inDump(all, bytes, edges) })
		}
	}
	return merged(all)
}

// exactly adds the parts of a text that hold a form with its white space.
func (r *Redactor) exactly(all []span, b []byte) []span {
	for at := 0; r.exact != nil; {
		start, end, ok := r.exact.find(b, at)
		if !ok {
			break
		}
		all, at = append(all, span{start, end}), start+1
	}
	return all
}

// found returns the parts of a skimmed text that hold a form, also an end of one at
// the beginning and a beginning of one at the end of a text that is cut there.
func (r *Redactor) found(text []byte, cutBefore, cutBehind bool) (all []span) {
	for at := 0; ; {
		start, end, ok := r.skimmed.find(text, at)
		if !ok {
			break
		}
		all, at = append(all, span{start, end}), start+1
	}
	all = r.shortened(all, text)
	if cutBefore {
		if n := r.skimmed.ended(text); n > fewCharacters {
			all = append(all, span{0, n})
		}
	}
	if cutBehind {
		if at := r.skimmed.begun(text); len(text)-at > fewCharacters {
			all = append(all, span{at, len(text)})
		}
	}
	if cutBefore && cutBehind && len(text) > fewCharacters && r.skimmed.within(text) {
		all = append(all, span{0, len(text)})
	}
	return all
}

// ellipsis is how errors end that repeat the beginning of a text only.
var ellipsis = []byte("…")

// shortened adds the beginnings of forms at which a text was cut.
func (r *Redactor) shortened(all []span, text []byte) []span {
	for at := 0; ; {
		i := bytes.Index(text[at:], ellipsis)
		if i < 0 {
			return all
		}
		if from := r.skimmed.begun(text[:at+i]); at+i-from > fewCharacters {
			all = append(all, span{from, at + i})
		}
		at += i + len(ellipsis)
	}
}

// inDump adds the numbers and characters of a dump whose bytes hold a secret.
func (r *Redactor) inDump(all []span, dump []dumped, edges bool) []span {
	values := make([]byte, len(dump))
	for i, d := range dump {
		values[i] = d.value
	}
	for _, f := range r.secrets(values, false, false, edges) {
		hidden, shown := dump[f.start:f.end], span{}
		for _, d := range hidden {
			if d.start > shown.end+maxGap || d.start < shown.start {
				all, shown = append(all, shown), span{d.start, d.end}
			}
			shown.start, shown.end = min(shown.start, d.start), max(shown.end, d.end)
			all = append(all, span{d.charStart, d.charEnd})
		}
		all = append(all, shown)
	}
	return all
}

// maxGap is the most that lies between the numbers of one line of a dump.
const maxGap = 4

// merged orders spans and joins those that touch.
func merged(all []span) []span {
	all = slices.DeleteFunc(all, func(s span) bool { return s.start == s.end })
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}

// hide returns b with *** in place of the spans.
func hide(b []byte, spans []span) []byte {
	if len(spans) == 0 {
		return b
	}
	out, at := make([]byte, 0, len(b)), 0
	for _, s := range spans {
		out = append(append(out, b[at:s.start]...), mask...)
		at = s.end
	}
	return append(out, b[at:]...)
}

// Bytes returns b with every secret replaced. It returns b itself when there is
// none; it never changes b.
func (r *Redactor) Bytes(b []byte) []byte {
	r = r.now()
	if r == nil || !r.suspect(b, false) && !r.dumped(b) {
		return b
	}
	return hide(b, r.secrets(b, false, true, false))
}

// dumped reports whether a secret is in the lines of a dump.
func (r *Redactor) dumped(b []byte) (found bool) {
	if r.skimmed == nil {
		return false
	}
	dumps(b, func(bytes []dumped) { found = found || len(r.inDump(nil, bytes, false)) > 0 })
	return found
}

// JSON is Bytes for the text of a JSON value: its escapes are decoded.
func (r *Redactor) JSON(b []byte) []byte {
	r = r.now()
	if r == nil || !r.suspect(b, true) {
		return b
	}
	return hide(b, r.secrets(b, true, false, false))
}

// String returns s with every secret replaced.
func (r *Redactor) String(s string) string {
	r = r.now()
	if r == nil || s == "" {
		return s
	}
	b := bytesOf(s)
	if !r.suspect(b, false) && !r.dumped(b) {
		return s
	}
	return string(hide(b, r.secrets(b, false, true, false)))
}

// Cut is String for a text of which the beginning, the end or both are missing:
// what is left there of a secret that was cut is replaced as well, unless it has a
// few characters only.
func (r *Redactor) Cut(s string) string {
	r = r.now()
	if r == nil || s == "" {
		return s
	}
	return string(hide(bytesOf(s), r.secrets(bytesOf(s), false, true, true)))
}

// bytesOf are the bytes of a text itself, which are only read here.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) } //nolint:gosec // they are only read
