package shell

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"unicode/utf8"
)

const (
	// maxOutput is how much of the output is kept by default.
	maxOutput = 10 << 20
	// reserve is room for our remarks.
	reserve = 1024
	// maxRecent is how much of the newest output watchers see.
	maxRecent = 4096
	// sniffLen is how much of the output decides its type.
	sniffLen = 8192
)

// output keeps the first quarter and the last three of what a command writes,
// within a bound, and counts the rest: errors come last, the header of what
// runs first.
type output struct {
	mu         sync.Mutex
	head, tail []byte
	headCap    int
	tailCap    int
	// at is where the oldest byte of a full tail is.
	at    int
	total int64
}

// newOutput makes an output whose text fits into limit bytes; 0 is no limit of the
// caller's.
func newOutput(limit int64) *output {
	room := maxOutput
	if limit > 0 && limit < maxOutput {
		room = int(limit)
	}
	room = max(room-reserve, room/2)
	return &output{headCap: room / 4, tailCap: room - room/4}
}

// write takes p; it never refuses, so that the command never waits for us.
func (o *output) write(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(p))
	n := min(len(p), o.headCap-len(o.head))
	o.head = append(o.head, p[:n]...)
	p = p[n:]
	n = min(len(p), o.tailCap-len(o.tail))
	o.tail = append(o.tail, p[:n]...)
	p = p[n:]
	for len(p) > 0 && o.tailCap > 0 {
		n = copy(o.tail[o.at:], p)
		o.at = (o.at + n) % o.tailCap
		p = p[n:]
	}
}

// written is how much was written in all.
func (o *output) written() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// recent returns the newest output as text.
func (o *output) recent() string {
	o.mu.Lock()
	last := make([]byte, 0, maxRecent)
	parts := [][]byte{o.head, o.tail[o.at:], o.tail[:o.at]}
	if o.total > int64(len(o.head)+len(o.tail)) {
		parts = parts[1:] // the tail does not follow the head
	}
	for _, part := range parts {
		last = append(last, part[max(0, len(part)-maxRecent):]...)
		last = last[max(0, len(last)-maxRecent):]
	}
	o.mu.Unlock()
	last = whole(begun(last))
	if isBinary(last) {
		return "(binary output)"
	}
	return string(bytes.ToValidUTF8(last, []byte("\uFFFD")))
}

// pieces returns what is kept as text, to be read one after the other. Binary
// output is only described.
func (o *output) pieces() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.tail
	if o.at > 0 {
		tail = append(append(make([]byte, 0, len(o.tail)), o.tail[o.at:]...), o.tail[:o.at]...)
	}
	if isBinary(o.head) || isBinary(tail) {
		kind := http.DetectContentType(o.head[:min(len(o.head), sniffLen)])
		if kind == "application/octet-stream" || bytes.HasPrefix([]byte(kind), []byte("text/")) {
			kind = "no text in UTF-8"
		}
		return [][]byte{fmt.Appendf(nil, "(binary output, not shown: %d bytes, %s)\n", o.total, kind)}
	}
	gap := o.total - int64(len(o.head)) - int64(len(tail))
	if gap == 0 {
		return [][]byte{valid(append(o.head[:len(o.head):len(o.head)], tail...))}
	}
	head := o.head[:bytes.LastIndexByte(o.head, '\n')+1]
	if len(head) == 0 {
		head = whole(o.head)
	}
	rest := tail[bytes.IndexByte(tail, '\n')+1:]
	if len(rest) == 0 {
		rest = begun(tail)
	}
	gap = o.total - int64(len(head)) - int64(len(rest))
	room := o.headCap + o.tailCap
	note := fmt.Appendf(nil, "\n(%d bytes left out)\n", gap)
	if len(head) > 0 && head[len(head)-1] == '\n' {
		note = note[1:]
	}
	h := cut(valid(head), room/4, false)
	return [][]byte{h, note, cut(valid(rest), room-room/4, true)}
}

// cut keeps the first n bytes, or the last, at a character: making text valid
// may have made it longer than what was kept.
func cut(b []byte, n int, last bool) []byte {
	if len(b) <= n {
		return b
	}
	if !last {
		return whole(b[:n])
	}
	return begun(b[len(b)-n:])
}

// begun cuts the end of a character off the beginning.
func begun(b []byte) []byte {
	for i := range min(utf8.UTFMax, len(b)) {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}

// valid returns b with everything that is not UTF-8 replaced, and b itself if all of it is
// UTF-8.
func valid(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}

// whole cuts a character off the end that has only begun.
func whole(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// isBinary reports whether output is not text: a NUL, or more than 30 % of bytes that are
// control characters or not UTF-8.
func isBinary(b []byte) bool {
	if bytes.IndexByte(b, 0) >= 0 {
		return true
	}
	bad := 0
	for i := 0; i < len(b); {
		c := b[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\b' && c != 0x1b || c == 0x7f {
				bad++
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		i += n
	}
	return bad*10 > len(b)*3
}
