package message

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text is JSON that is read from front to back. The end of a value is found by
// its brackets and quotes alone, which takes a fraction of the time of reading
// it: who takes a value checks it.
type text struct{ rest []byte }

var (
	errObject = errors.New("not a JSON object")
	errValue  = errors.New("not a JSON value")
)

// member returns the name of the next member of an object, as it is written,
// and stands before its value then; nil is the end of the object.
func (t *text) member(first bool) (name []byte, err error) {
	t.space()
	if first {
		if !t.take('{') {
			return nil, errObject
		}
		t.space()
	}
	switch {
	case t.take('}'):
		return nil, nil
	case !first && !t.take(','):
		return nil, errObject
	}
	t.space()
	if name = t.cut(stringEnd(t.rest)); name == nil {
		return nil, errObject
	}
	t.space()
	if !t.take(':') {
		return nil, errObject
	}
	t.space()
	return name, nil
}

// value returns the next value as it is written.
func (t *text) value() ([]byte, error) {
	if b := t.cut(valueEnd(t.rest)); b != nil {
		return b, nil
	}
	return nil, errValue
}

// checked returns the next value as it is written, once it is known to be one.
func (t *text) checked() ([]byte, error) {
	b, err := t.value()
	if err == nil && !json.Valid(b) {
		err = errValue
	}
	return b, err
}

// end reports whether nothing is left.
func (t *text) end() error {
	if t.space(); len(t.rest) > 0 {
		return errObject
	}
	return nil
}

func (t *text) space() {
	i := 0
	for i < len(t.rest) && isSpace(t.rest[i]) {
		i++
	}
	t.rest = t.rest[i:]
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func (t *text) begins(c byte) bool { return len(t.rest) > 0 && t.rest[0] == c }

func (t *text) take(c byte) bool {
	if !t.begins(c) {
		return false
	}
	t.rest = t.rest[1:]
	return true
}

func (t *text) cut(n int) []byte {
	if n == 0 {
		return nil
	}
	b := t.rest[:n:n]
	t.rest = t.rest[n:]
	return b
}

// jsonMember is a member of an object as it is written.
type jsonMember struct{ name, value []byte }

func (m jsonMember) sameName(other jsonMember) bool { return bytes.Equal(m.name, other.name) }

// members returns the members of an object in their order.
func members(b []byte) (all []jsonMember, err error) {
	t := text{b}
	for first := true; ; first = false {
		name, err := t.member(first)
		if err != nil || name == nil {
			return all, err
		}
		value, err := t.value()
		if err != nil {
			return nil, err
		}
		all = append(all, jsonMember{name, value})
	}
}

// stringEnd returns the length of the string that b begins with, 0 when it
// begins with none.
func stringEnd(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return 0
}

// valueEnd returns the length of the value that b begins with, 0 when it does
// not end.
func valueEnd(b []byte) int {
	if len(b) > 0 && b[0] == '"' {
		return stringEnd(b)
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := stringEnd(b[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // of the object around a number or a word
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return 0
}

// unquote returns what a JSON string says. What is rare is left to
// encoding/json: halves of characters, bytes that are not UTF-8, and mistakes.
func unquote(b []byte) (string, error) {
	if len(b) < 2 || b[0] != '"' || hasControl(b) || !utf8.Valid(b) {
		return unquoteRare(b)
	}
	inner := b[1 : len(b)-1]
	n := bytes.IndexByte(inner, '\\')
	if n < 0 {
		return string(inner), nil
	}
	var out strings.Builder
	out.Grow(len(inner))
	for n >= 0 {
		out.Write(inner[:n])
		r, size := escaped(inner[n:])
		if size == 0 {
			return unquoteRare(b)
		}
		out.WriteRune(r)
		inner = inner[n+size:]
		n = bytes.IndexByte(inner, '\\')
	}
	out.Write(inner)
	return out.String(), nil
}

// hasControl reports whether there is a byte below the space, which a JSON string
// must not hold. It looks at eight bytes at a time.
func hasControl(b []byte) bool {
	const each = 0x0101010101010101
	for ; len(b) >= 8; b = b[8:] {
		x := binary.LittleEndian.Uint64(b)
		// Taking 32 from each byte sets the top bit of those below 32.
		if (x-' '*each)&^x&(0x80*each) != 0 {
			return true
		}
	}
	return slices.ContainsFunc(b, func(c byte) bool { return c < ' ' })
}

func unquoteRare(b []byte) (s string, err error) {
	err = json.Unmarshal(b, &s)
	return s, err
}

// escapes are the characters behind a backslash and what they stand for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}

// escaped returns the character that an escape stands for and the length of the
// escape, which is 0 for half a character and for what is no escape.
func escaped(b []byte) (r rune, size int) {
	if len(b) < 2 {
		return 0, 0
	}
	if c := escapes[b[1]]; c != 0 {
		return rune(c), 2
	}
	if b[1] != 'u' || len(b) < 6 {
		return 0, 0
	}
	code, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	if err != nil || utf16.IsSurrogate(rune(code)) {
		return 0, 0
	}
	return rune(code), 6
}
