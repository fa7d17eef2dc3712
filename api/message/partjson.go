package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// MarshalJSON writes the part as AppendJSON does.
func (p Part) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil) }

// AppendJSON appends the named fields and, after them, those of Fields. It
// leaves <, > and & as they are.
func (p Part) AppendJSON(dst []byte) ([]byte, error) {
	type plain Part // without this method
	from := len(dst)
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode((*plain)(&p)); err != nil {
		return nil, fmt.Errorf("part %q (%s): %w", p.ID, p.Type, err)
	}
	b := buf.Bytes()
	b = b[:len(b)-1] // the encoder's line end
	if len(p.Fields) == 0 {
		return b, nil
	}
	if !json.Valid(p.Fields) {
		return nil, fmt.Errorf("part %q (%s): its fields are not JSON", p.ID, p.Type)
	}
	whole, err := merge(b[from:], p.Fields)
	if err != nil {
		return nil, fmt.Errorf("part %q (%s): its fields: %w", p.ID, p.Type, err)
	}
	return append(b[:from], whole...), nil
}

// UnmarshalJSON reads the named fields and keeps the others in Fields. A named
// field of the wrong shape, or a field that occurs twice, is an error.
func (p *Part) UnmarshalJSON(b []byte) error {
	head, err := readHead(b)
	if err != nil {
		return fmt.Errorf("part: %w", err)
	}
	content := head.Type.content()
	out := Part{}
	t := text{b}
	out.Fields, err = decode(&t, reflect.ValueOf(&out).Elem(), func(name string) bool {
		switch name {
		case "id", "type":
			return true
		case "synthetic", "ignored", "origin", "metadata", "start", "end":
			return content != ""
		}
		return name == content
	})
	if err == nil {
		err = t.end()
	}
	if err != nil {
		return fmt.Errorf("part %q (%s): %w", head.ID, head.Type, err)
	}
	*p = out
	return nil
}

// readHead reads id and type, on which the meaning of the rest depends.
func readHead(b []byte) (head Part, err error) {
	t := text{b}
	for first := true; head.ID == "" || head.Type == ""; first = false {
		name, err := t.member(first)
		if err != nil || name == nil {
			return head, err
		}
		value, err := t.value()
		if err != nil {
			return head, err
		}
		var s string
		switch string(name) {
		case `"id"`:
			s, err = unquote(value)
			head.ID = s
		case `"type"`:
			s, err = unquote(value)
			head.Type = PartType(s)
		}
		if err != nil {
			return head, fmt.Errorf("%s: %w", name, err)
		}
	}
	return head, nil
}

// decode reads an object into a struct and returns the object of the members
// that the struct does not name, or that known, unless nil, does not want.
func decode(t *text, into reflect.Value, known func(string) bool) (rest []byte, err error) {
	var seen uint64
	names, at := memberNames()[into.Type()], 0
	for first := true; ; first = false {
		name, err := t.member(first)
		if err != nil {
			return nil, err
		}
		if name == nil {
			return closed(rest), nil
		}
		key, err := plainName(name)
		if err != nil {
			return nil, err
		}
		i := field(names, key, at)
		var unnamed []byte
		switch {
		case i < 0 || known != nil && !known(names[i]):
			unnamed, err = t.checked()
		case seen&(1<<i) != 0:
			err = errTwice
		default:
			seen, at = seen|1<<i, i+1
			unnamed, err = set(into.Field(i), t)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if unnamed != nil {
			rest = appendMember(rest, name, unnamed)
		}
	}
}

var errTwice = errors.New("stands twice")

// memberNames are the members of the fields of Part and of all that it holds.
// They are gathered once: asking the types each time would take longer than
// reading the part.
var memberNames = sync.OnceValue(func() map[reflect.Type][]string {
	all := map[reflect.Type][]string{}
	var gather func(reflect.Type)
	gather = func(t reflect.Type) {
		names := make([]string, t.NumField())
		all[t] = names
		for i := range names {
			f := t.Field(i)
			names[i], _, _ = strings.Cut(f.Tag.Get("json"), ",")
			if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct && all[f.Type.Elem()] == nil {
				gather(f.Type.Elem())
			}
		}
	}
	gather(reflect.TypeFor[Part]())
	return all
})

// field returns the place of a name, -1 when it is not there. It looks from at
// on first: members mostly come in the order of the fields.
func field(names []string, key []byte, at int) int {
	for n := range names {
		if i := (at + n) % len(names); names[i] == string(key) && names[i] != "-" {
			return i
		}
	}
	return -1
}

// plainName is the name of a member without its quotes.
func plainName(name []byte) ([]byte, error) {
	if bytes.IndexByte(name, '\\') < 0 && !hasControl(name) {
		return name[1 : len(name)-1], nil
	}
	s, err := unquote(name)
	return []byte(s), err
}

// set reads a value into a field. What it does not name is returned.
func set(f reflect.Value, t *text) (unnamed []byte, err error) {
	typ := f.Type()
	if typ.Kind() == reflect.Pointer && typ.Elem().Kind() == reflect.Struct && t.begins('{') {
		f.Set(reflect.New(typ.Elem()))
		return decode(t, f.Elem(), nil)
	}
	value, err := t.value()
	switch {
	case err != nil || string(value) == "null":
		return nil, err // null is nothing, as encoding/json has it
	case typ.Kind() == reflect.String:
		s, err := unquote(value)
		f.SetString(s)
		return nil, err
	case typ == reflect.TypeFor[json.RawMessage]():
		if !json.Valid(value) {
			return nil, errValue
		}
		f.SetBytes(slices.Clone(value))
		return nil, nil
	case typ == reflect.TypeFor[*int]() && isShortInt(value):
		f.Set(reflect.New(typ.Elem()))
		f = f.Elem()
		fallthrough
	case f.CanInt() && isShortInt(value):
		n, err := strconv.ParseInt(string(value), 10, 64)
		f.SetInt(n)
		return nil, err
	}
	return nil, json.Unmarshal(value, f.Addr().Interface())
}

// isShortInt reports whether a value is digits alone, and few enough to fit; it is
// the usual case and takes no reader.
func isShortInt(b []byte) bool {
	if len(b) > 15 || b[0] == '0' && len(b) > 1 {
		return false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func appendMember(rest, name, value []byte) []byte {
	if len(rest) == 0 {
		rest = append(rest, '{')
	} else {
		rest = append(rest, ',')
	}
	return append(append(append(rest, name...), ':'), value...)
}

func closed(rest []byte) []byte {
	if rest == nil {
		return nil
	}
	return append(rest, '}')
}

// merge adds the members of extra to an object. Where both have a member it is
// merged when both are objects; otherwise the object's own counts.
func merge(own, extra []byte) ([]byte, error) {
	more, err := members(extra)
	if err != nil {
		return nil, err
	}
	had, err := members(own)
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, m := range had {
		if i := slices.IndexFunc(more, m.sameName); i >= 0 && m.value[0] == '{' && more[i].value[0] == '{' {
			if m.value, err = merge(m.value, more[i].value); err != nil {
				return nil, err
			}
		}
		out = appendMember(out, m.name, m.value)
	}
	for _, m := range more {
		if !slices.ContainsFunc(had, m.sameName) {
			out = appendMember(out, m.name, m.value)
		}
	}
	return closed(out), nil
}
