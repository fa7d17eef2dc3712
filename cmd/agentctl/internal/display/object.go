package display

import (
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// objects writes JSON. On a terminal the characters that JSON leaves as they are
// and a terminal may obey are escaped: the values stay the same. Each write holds
// whole characters.
type objects struct {
	w   io.Writer
	tty bool
}

func (o objects) Write(b []byte) (int, error) {
	if !o.tty {
		return o.w.Write(b)
	}
	if _, err := o.w.Write(escaped(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// escaped returns JSON in which every hidden character is written as \u and its
// number. Control characters can only be between values.
func escaped(b []byte) []byte {
	out := b[:0:0]
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r < ' ' || !hidden(r):
			out = append(out, b[i:i+size]...)
		case r <= 0xffff:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
		i += size
	}
	return out
}
