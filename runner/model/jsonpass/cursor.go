// Package jsonpass reads and writes JSON in a single pass, without reflection: the small values of one known shape that a model streams.
package jsonpass

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep a server may nest what we do not even read.
const maxDepth = 100

// Cursor reads one JSON value. A stream is thousands of small values of one known
// shape; encoding/json passes over each twice and costs ten times as much.
//
// The first mistake is kept, and Err returns it; every method is a no-op after it.
type Cursor struct {
	b       []byte
	i       int
	depth   int
	key     []byte
	scratch []byte
	err     error
}

// Reset begins another value and keeps the scratch space.
func (c *Cursor) Reset(b []byte) {
	c.b, c.i, c.depth, c.key, c.err = b, 0, 0, nil, nil
}

// Err returns the first mistake, nil if there is none.
func (c *Cursor) Err() error { return c.err }

// Key returns the name of the member that is being read.
func (c *Cursor) Key() string { return string(bytes.Trim(c.key, `"`)) }

// Fail keeps a mistake at the place of the cursor, unless there is one already.
func (c *Cursor) Fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("byte %d: %s", c.i, fmt.Sprintf(format, args...))
	}
}

// Next returns the next byte that is not a space, without reading it; 0 at the end.
func (c *Cursor) Next() byte {
	if c.err != nil {
		return 0
	}
	for c.i < len(c.b) {
		switch b := c.b[c.i]; b {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return b
		}
	}
	return 0
}

func (c *Cursor) take(want byte) bool {
	if c.Next() != want || c.err != nil {
		return false
	}
	c.i++
	return true
}

// End fails if anything follows.
func (c *Cursor) End() {
	if c.Next(); c.err == nil && c.i < len(c.b) {
		c.Fail("text after the value")
	}
}

// Object calls member for each member of an object; member reads the value. A
// Null is an object without members.
func (c *Cursor) Object(member func(key []byte)) {
	if c.Null() {
		return
	}
	if !c.open('{', "an object") {
		return
	}
	defer func() { c.depth-- }()
	if c.take('}') {
		return
	}
	for c.err == nil {
		if c.Next() != '"' {
			c.Fail("want a member's name, got %s", c.kind())
			return
		}
		start := c.i
		key := c.Text()
		if c.err == nil {
			c.key = c.b[start:c.i]
		}
		if !c.take(':') {
			c.Fail("want ':', got %s", c.kind())
			return
		}
		member(key)
		if !c.more('}') {
			return
		}
	}
}

// Array calls item for each item of an array; item reads it. A null is an empty
// array.
func (c *Cursor) Array(item func()) {
	if c.Null() {
		return
	}
	if !c.open('[', "an array") {
		return
	}
	defer func() { c.depth-- }()
	if c.take(']') {
		return
	}
	for c.err == nil {
		item()
		if !c.more(']') {
			return
		}
	}
}

func (c *Cursor) open(b byte, what string) bool {
	c.depth++
	if c.depth > maxDepth {
		c.Fail("nested deeper than %d", maxDepth)
	}
	if !c.take(b) {
		c.want(what)
		c.depth--
		return false
	}
	return true
}

// more reads a comma, or the closing byte, for which it returns false.
func (c *Cursor) more(closing byte) bool {
	if c.take(',') {
		return true
	}
	if !c.take(closing) {
		c.Fail("want ',' or '%c', got %s", closing, c.kind())
	}
	return false
}

func (c *Cursor) want(what string) {
	if len(c.key) > 0 {
		c.Fail("%s: want %s, got %s", c.key, what, c.kind())
		return
	}
	c.Fail("want %s, got %s", what, c.kind())
}

// kind names the JSON type at the cursor.
func (c *Cursor) kind() string {
	switch b := c.Next(); {
	case c.i >= len(c.b):
		return "the end"
	case b == '"':
		return "a string"
	case b == '{':
		return "an object"
	case b == '[':
		return "an array"
	case b == 't' || b == 'f':
		return "a boolean"
	case b == 'n':
		return "null"
	case b == '-' || (b >= '0' && b <= '9'):
		return "a number"
	default:
		return strconv.QuoteRuneToASCII(rune(b))
	}
}

// Null reads a null if there is one.
func (c *Cursor) Null() bool {
	if c.Next() != 'n' {
		return false
	}
	c.literal("null")
	return c.err == nil
}

func (c *Cursor) literal(word string) {
	if !bytes.HasPrefix(c.b[c.i:], []byte(word)) {
		c.Fail("want %s", word)
		return
	}
	c.i += len(word)
}

// Text reads a string or a null. The bytes are valid until the next call and
// may be invalid UTF-8: a server that cuts inside a character sends its halves
// in two pieces, and only the joined text is valid again.
func (c *Cursor) Text() []byte {
	if c.Null() {
		return nil
	}
	if !c.take('"') {
		c.want("a string")
		return nil
	}
	start := c.i
	for c.i < len(c.b) {
		switch b := c.b[c.i]; {
		case b == '"':
			s := c.b[start:c.i]
			c.i++
			return s
		case b == '\\':
			return c.escaped(start)
		case b < ' ':
			c.Fail("control character in a string")
			return nil
		}
		c.i++
	}
	c.Fail("string without an end")
	return nil
}

// escaped reads the rest of a string that has an escape at the cursor.
func (c *Cursor) escaped(start int) []byte {
	out := append(c.scratch[:0], c.b[start:c.i]...)
	for c.i < len(c.b) {
		switch b := c.b[c.i]; {
		case b == '"':
			c.i++
			c.scratch = out
			return out
		case b == '\\':
			out = c.escape(out)
			if c.err != nil {
				return nil
			}
		case b < ' ':
			c.Fail("control character in a string")
			return nil
		default:
			out = append(out, b)
			c.i++
		}
	}
	c.Fail("string without an end")
	return nil
}

func (c *Cursor) escape(out []byte) []byte {
	if c.i+1 >= len(c.b) {
		c.Fail("string without an end")
		return out
	}
	b := c.b[c.i+1]
	if b == 'u' {
		r := c.unicode()
		if utf16.IsSurrogate(r) {
			low := rune(utf8.RuneError)
			if c.i+1 < len(c.b) && c.b[c.i] == '\\' && c.b[c.i+1] == 'u' {
				at := c.i
				if low = c.unicode(); utf16.DecodeRune(r, low) == utf8.RuneError {
					c.i = at
				}
			}
			r = utf16.DecodeRune(r, low)
		}
		return utf8.AppendRune(out, r)
	}
	at := bytes.IndexByte([]byte(`"\/bfnrt`), b)
	if at < 0 {
		c.Fail("unknown escape")
		return out
	}
	c.i += 2
	return append(out, "\"\\/\b\f\n\r\t"[at])
}

// unicode reads \uXXXX.
func (c *Cursor) unicode() rune {
	if c.i+6 > len(c.b) {
		c.Fail("short escape")
		return 0
	}
	var r rune
	for _, b := range c.b[c.i+2 : c.i+6] {
		switch {
		case b >= '0' && b <= '9':
			r = r<<4 | rune(b-'0')
		case b|0x20 >= 'a' && b|0x20 <= 'f':
			r = r<<4 | rune(b|0x20-'a'+10)
		default:
			c.Fail("unknown escape")
			return 0
		}
	}
	c.i += 6
	return r
}

// Integer reads a whole number or a null, which is 0. "12" is an error: an index must not
// be guessed.
func (c *Cursor) Integer() int64 {
	if c.Null() || c.err != nil {
		return 0
	}
	if b := c.Next(); b != '-' && (b < '0' || b > '9') {
		c.want("a number")
		return 0
	}
	raw := c.number()
	n, ok := whole(raw)
	if !ok {
		c.Fail("%s: want a whole number, got %s", c.key, raw)
	}
	return n
}

// whole is the value of a number that has no fraction.
func whole(raw []byte) (n int64, ok bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// maxCount is far more tokens than any answer takes, and so few that the sums of
// the longest run can be counted.
const maxCount = 1 << 40

// Count reads a number of tokens. A wrong number, including NaN and more than any answer
// can take, must not lose an answer: it counts as 0, and wrong is its text. A number in a
// string is valid: protobuf writes long ones so.
func (c *Cursor) Count() (n int64, wrong string) {
	c.Next()
	if c.err != nil {
		return 0, ""
	}
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(c.b[c.i:], []byte(word)) {
			c.i += len(word)
			return 0, word
		}
	}
	var raw []byte
	switch b := c.Next(); {
	case b == '"':
		raw = c.Raw()
	case b == '-' || (b >= '0' && b <= '9'):
		raw = c.number()
	default:
		return c.Integer(), "" // null, or no number at all
	}
	if n, ok := whole(bytes.Trim(raw, `"`)); ok && n >= 0 && n <= maxCount {
		return n, ""
	}
	return 0, string(raw)
}

func (c *Cursor) digits() {
	at := c.i
	for c.i < len(c.b) && c.b[c.i] >= '0' && c.b[c.i] <= '9' {
		c.i++
	}
	if c.i == at {
		c.Fail("malformed number")
	}
}

// number reads a number as JSON writes it.
func (c *Cursor) number() []byte {
	start := c.i
	c.take('-')
	if c.i < len(c.b) && c.b[c.i] == '0' {
		c.i++
	} else {
		c.digits()
	}
	if c.i < len(c.b) && c.b[c.i] == '.' {
		c.i++
		c.digits()
	}
	if c.i < len(c.b) && c.b[c.i]|0x20 == 'e' {
		c.i++
		if c.i < len(c.b) && (c.b[c.i] == '+' || c.b[c.i] == '-') {
			c.i++
		}
		c.digits()
	}
	return c.b[start:c.i]
}

// Raw reads any value and returns it as it is written.
func (c *Cursor) Raw() []byte {
	c.Next()
	start := c.i
	c.Skip()
	if c.err != nil {
		return nil
	}
	return c.b[start:c.i]
}

// Skip reads any value.
func (c *Cursor) Skip() {
	switch b := c.Next(); {
	case b == '"':
		c.skipText()
	case b == '{':
		c.Object(func([]byte) { c.Skip() })
	case b == '[':
		c.Array(c.Skip)
	case b == 't':
		c.literal("true")
	case b == 'f':
		c.literal("false")
	case b == 'n':
		c.literal("null")
	case b == '-' || (b >= '0' && b <= '9'):
		c.number()
	default:
		c.want("a value")
	}
}

// skipText reads a string that is not needed: a server that sends everything twice sends
// long ones.
func (c *Cursor) skipText() {
	c.i++
	for c.i < len(c.b) && c.err == nil {
		switch b := c.b[c.i]; {
		case b == '"':
			c.i++
			return
		case b == '\\':
			c.skipEscape()
		case b < ' ':
			c.Fail("control character in a string")
		default:
			c.i++
		}
	}
	c.Fail("string without an end")
}

func (c *Cursor) skipEscape() {
	switch {
	case c.i+1 >= len(c.b):
		c.Fail("string without an end")
	case c.b[c.i+1] == 'u':
		c.unicode()
	case bytes.IndexByte([]byte(`"\/bfnrt`), c.b[c.i+1]) < 0:
		c.Fail("unknown escape")
	default:
		c.i += 2
	}
}
