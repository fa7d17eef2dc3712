package opencode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The limits of a configuration.
const (
	maxBytes = 1 << 20
	maxDepth = 64
)

// kind is the kind of a value in JSON.
type kind int

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

// value is a value of a configuration. Members keep the order of the file, which decides
// what a permission means.
type value struct {
	kind    kind
	line    int
	column  int
	text    string // of a text, and of a number as it is written
	truth   bool
	items   []value
	members []member
}

type member struct {
	key string
	value
}

// get returns a member of an object, or nil.
func (v *value) get(key string) *value {
	for i := range v.members {
		if v.members[i].key == key {
			return &v.members[i].value
		}
	}
	return nil
}

// mistake is a place in a configuration that cannot be read.
type mistake struct {
	line, column int
	what         string
}

func (m *mistake) Error() string { return fmt.Sprintf("%d:%d: %s", m.line, m.column, m.what) }

// reader reads JSON with comments and trailing commas.
type reader struct {
	in   []byte
	at   int
	line int
	from int // where the line begins
}

// read reads one value, with nothing behind it.
func read(in []byte) (*value, error) {
	r := &reader{in: bytes.TrimPrefix(in, []byte("\xef\xbb\xbf")), line: 1}
	if len(in) > maxBytes {
		return nil, &mistake{1, 1, fmt.Sprintf("more than %d bytes", maxBytes)}
	}
	if !utf8.Valid(in) {
		return nil, &mistake{1, 1, "not UTF-8"}
	}
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if err := r.space(); err != nil {
		return nil, err
	}
	if r.at < len(r.in) {
		return nil, r.wrong("text behind the end of the configuration")
	}
	return &v, nil
}

func (r *reader) wrong(what string) error {
	return &mistake{r.line, utf8.RuneCount(r.in[r.from:r.at]) + 1, what}
}

// peek returns the next byte; 0 at the end.
func (r *reader) peek() byte {
	if r.at < len(r.in) {
		return r.in[r.at]
	}
	return 0
}

// space skips blanks and comments.
func (r *reader) space() error {
	for r.at < len(r.in) {
		switch c := r.in[r.at]; {
		case c == '\n':
			r.at++
			r.line, r.from = r.line+1, r.at
		case c == ' ' || c == '\t' || c == '\r':
			r.at++
		case bytes.HasPrefix(r.in[r.at:], []byte("//")):
			for r.at < len(r.in) && r.in[r.at] != '\n' {
				r.at++
			}
		case bytes.HasPrefix(r.in[r.at:], []byte("/*")):
			n := bytes.Index(r.in[r.at+2:], []byte("*/"))
			if n < 0 {
				return r.wrong("a comment without its end")
			}
			for end := r.at + n + 4; r.at < end; r.at++ {
				if r.in[r.at] == '\n' {
					r.line, r.from = r.line+1, r.at+1
				}
			}
		default:
			return nil
		}
	}
	return nil
}

func (r *reader) value(depth int) (value, error) {
	if err := r.space(); err != nil {
		return value{}, err
	}
	v := value{line: r.line, column: utf8.RuneCount(r.in[r.from:r.at]) + 1}
	if depth > maxDepth {
		return v, r.wrong(fmt.Sprintf("nested more than %d deep", maxDepth))
	}
	var err error
	switch c := r.peek(); {
	case c == '{':
		v.kind = object
		err = r.object(&v, depth)
	case c == '[':
		v.kind = list
		err = r.list(&v, depth)
	case c == '"':
		v.kind = text
		v.text, err = r.text()
	default:
		err = r.word(&v)
	}
	return v, err
}

// word reads a number, true, false or null.
func (r *reader) word(v *value) error {
	end := r.at
	for end < len(r.in) && strings.IndexByte("+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", r.in[end]) >= 0 {
		end++
	}
	switch w := string(r.in[r.at:end]); w {
	case "":
		if r.at == len(r.in) {
			return r.wrong("the configuration ends where a value is expected")
		}
		return r.wrong("a value is expected")
	case "true", "false":
		v.kind, v.truth = boolean, w == "true"
	case "null":
	default:
		if !json.Valid([]byte(w)) {
			return r.wrong(fmt.Sprintf("%.40q is no value", w))
		}
		v.kind, v.text = number, w
	}
	r.at = end
	return nil
}

func (r *reader) text() (string, error) {
	for end := r.at + 1; end < len(r.in); end++ {
		switch r.in[end] {
		case '\\':
			end++
		case '\n':
			return "", r.wrong("a text without its closing quote")
		case '"':
			var s string
			if err := json.Unmarshal(r.in[r.at:end+1], &s); err != nil {
				return "", r.wrong("a text that is not JSON: " + err.Error())
			}
			r.at = end + 1
			return s, nil
		}
	}
	return "", r.wrong("a text without its closing quote")
}

// next skips a comma, and reports whether the list or object has ended.
func (r *reader) next(closing byte, first bool) (bool, error) {
	if err := r.space(); err != nil {
		return false, err
	}
	if r.peek() == ',' && !first {
		r.at++
		if err := r.space(); err != nil {
			return false, err
		}
	} else if !first && r.peek() != closing {
		return false, r.wrong(fmt.Sprintf("a comma or %c is expected", closing))
	}
	if r.peek() == closing {
		r.at++
		return true, nil
	}
	return false, nil
}

func (r *reader) list(v *value, depth int) error {
	r.at++
	for {
		if done, err := r.next(']', len(v.items) == 0); done || err != nil {
			return err
		}
		item, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
}

func (r *reader) object(v *value, depth int) error {
	r.at++
	seen := map[string]bool{}
	for {
		if done, err := r.next('}', len(v.members) == 0); done || err != nil {
			return err
		}
		if r.peek() != '"' {
			return r.wrong("a name in double quotes is expected")
		}
		key, err := r.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return r.wrong(fmt.Sprintf("%.40q is there twice", key))
		}
		seen[key] = true
		if err := r.space(); err != nil {
			return err
		}
		if r.peek() != ':' {
			return r.wrong("a colon is expected")
		}
		r.at++
		item, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		v.members = append(v.members, member{key, item})
	}
}
