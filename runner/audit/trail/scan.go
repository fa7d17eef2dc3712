package trail

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// errShape is what is not JSON as a journal has it.
var errShape = errors.New("not a JSON object")

// members calls visit with each member of the object that b begins with, its name and its
// value as they are written, until visit returns false. Values are found by their quotes and
// brackets alone, which takes a fraction of the time of decoding them: most of a journal is
// text that the log does not hold.
func members(b []byte, visit func(name string, value []byte) bool) error {
	return membersUntil(b, "", visit)
}

// membersUntil is members that gives the member of a name all that follows, and ends there.
func membersUntil(b []byte, last string, visit func(name string, value []byte) bool) error {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return errShape
	}
	for i = space(b, i+1); ; {
		if i < len(b) && b[i] == '}' {
			return nil
		}
		n := stringEnd(b[min(i, len(b)):])
		if n == 0 {
			return errShape
		}
		name := b[i+1 : i+n-1]
		i = space(b, i+n)
		if i >= len(b) || b[i] != ':' {
			return errShape
		}
		i = space(b, i+1)
		if last != "" && string(name) == last {
			visit(last, b[min(i, len(b)):])
			return nil
		}
		n = valueEnd(b[min(i, len(b)):])
		if n == 0 {
			return errShape
		}
		if !visit(string(name), b[i:i+n:i+n]) {
			return nil
		}
		i = space(b, i+n)
		switch {
		case i < len(b) && b[i] == ',':
			i = space(b, i+1)
		case i >= len(b) || b[i] != '}':
			return errShape
		}
	}
}

// elements calls visit with each element of the list that b begins with. What is not a list
// has none.
func elements(b []byte, visit func(value []byte)) {
	i := space(b, 0)
	if i >= len(b) || b[i] != '[' {
		return
	}
	for i = space(b, i+1); i < len(b) && b[i] != ']'; {
		n := valueEnd(b[i:])
		if n == 0 {
			return
		}
		visit(b[i : i+n : i+n])
		if i = space(b, i+n); i < len(b) && b[i] == ',' {
			i = space(b, i+1)
		}
	}
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd is the length of the string that b begins with, 0 if it begins with none.
func stringEnd(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	for i := 1; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return 0
		}
		end := i + n
		escapes := 0
		for end-1-escapes >= i && b[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end + 1
		}
		i = end + 1
	}
}

// valueEnd is the length of the value that b begins with, 0 if it does not end.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := stringEnd(b[i:])
			if n == 0 {
				return 0
			}
			if depth == 0 {
				return i + n
			}
			i += n - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
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

// length is how many bytes the string in a JSON string has.
func length(quoted []byte) int64 {
	if len(quoted) < 2 || quoted[0] != '"' {
		return 0
	}
	b := quoted[1 : len(quoted)-1]
	n := int64(len(b))
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 || i+1 >= len(b) {
			return n
		}
		if b = b[i+1:]; b[0] != 'u' {
			n-- // \n is one byte
			b = b[1:]
			continue
		}
		size := min(5, len(b))
		var r string
		unit := append(append([]byte{'"', '\\'}, b[:size]...), '"')
		if pair := 11; len(b) >= pair && b[5] == '\\' && b[6] == 'u' {
			var both string
			if json.Unmarshal(append(append([]byte{'"', '\\'}, b[:pair]...), '"'), &both) == nil && utf8.RuneCountInString(both) == 1 {
				n += int64(len(both)) - int64(pair) - 1
				b = b[pair:]
				continue
			}
		}
		_ = json.Unmarshal(unit, &r) // what is no character counts as what replaces it
		n += int64(len(r)) - int64(size) - 1
		b = b[size:]
	}
}

// unquoted is the string in a JSON string, "" if there is none.
func unquoted(b []byte) (s string) {
	if len(b) >= 2 && b[0] == '"' && bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) {
		return string(b[1 : len(b)-1])
	}
	_ = json.Unmarshal(b, &s) // what is not a string is none
	return s
}

// excerptLimit is how many characters of a text a record has.
const excerptLimit = 200

// excerpt is the beginning of a text.
func excerpt(s string) string {
	n := 0
	for i := range s {
		if n++; n == excerptLimit {
			if _, size := utf8.DecodeRuneInString(s[i:]); i+size < len(s) {
				return strings.ToValidUTF8(s[:i], "\ufffd") + "…"
			}
			break
		}
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
