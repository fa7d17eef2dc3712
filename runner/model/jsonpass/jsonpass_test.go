package jsonpass

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCountsThatCannotBe(t *testing.T) {
	for in, want := range map[string]struct {
		n     int64
		wrong string
	}{
		"12": {12, ""}, "5.0": {5, ""}, "null": {0, ""}, "-3": {0, "-3"}, "NaN": {0, "NaN"}, " -Infinity": {0, "-Infinity"},
		"9223372036854775807": {0, "9223372036854775807"}, "99999999999999999999": {0, "99999999999999999999"}, "1e300": {0, "1e300"}, "1.5": {0, "1.5"},
		"1099511627776": {1 << 40, ""}, "1099511627777": {0, "1099511627777"},
		`"12"`: {12, ""}, `"-3"`: {0, `"-3"`}, `"many"`: {0, `"many"`}, `""`: {0, `""`},
	} {
		var c Cursor
		c.Reset([]byte(in))
		if n, wrong := c.Count(); n != want.n || wrong != want.wrong || c.Err() != nil {
			t.Errorf("%s: %d, %q, %v", in, n, wrong, c.Err())
		}
	}
	for in, says := range map[string]string{`{}`: "got an object", `"12`: "without an end", `true`: "got a boolean"} {
		var c Cursor
		c.Reset([]byte(in))
		if c.Count(); c.Err() == nil || !strings.Contains(c.Err().Error(), says) {
			t.Errorf("%s: %v, want %q", in, c.Err(), says)
		}
	}
}

func TestKeyIsThatOfTheMember(t *testing.T) {
	var c Cursor
	c.Reset([]byte(`{"a": {"b": 1}}`))
	var keys []string
	c.Object(func([]byte) {
		c.Object(func([]byte) { keys = append(keys, c.Key()); c.Skip() })
	})
	if c.End(); c.Err() != nil || len(keys) != 1 || keys[0] != "b" {
		t.Errorf("keys %v, %v", keys, c.Err())
	}
}

func TestOpenAddsTheCommaThatIsDue(t *testing.T) {
	for in, want := range map[string]string{"[": "[", "{": "{", "": "", "[1": "[1,", `{"a":[]`: `{"a":[],`} {
		if got := string(Open([]byte(in))); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

// FuzzCursor holds the cursor against encoding/json.
func FuzzCursor(f *testing.F) {
	for _, s := range []string{
		`{"usage":{"prompt_tokens":1.0e1,"x":-0.5E-3}}`, `{"a":[true,false,null,{"b":"\ud800"}]}`, ` { } `, `"\u00e4\n"`, `-0`, `[1,]`, `{"a":01}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var c Cursor
		c.Reset(in)
		c.Skip()
		c.End()
		if len(in) < 90 && (c.Err() == nil) != json.Valid(in) {
			t.Fatalf("%q: cursor says %v, encoding/json valid=%v", in, c.Err(), json.Valid(in))
		}
		c.Reset(in)
		s := c.Text()
		var want string
		if c.End(); c.Err() == nil && string(in) != "null" && utf8.Valid(in) && json.Unmarshal(in, &want) == nil && strings.ToValidUTF8(string(s), "\uFFFD") != want {
			t.Fatalf("%q: text %q, want %q", in, s, want)
		}
	})
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"", "a\"\\\x00\x1f\x7f", "\xff\xfe", "ä☃😀\u2028\uFFFD", "\xe2\x98"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendString(nil, s)
		var back string
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if want := string([]rune(s)); back != want {
			t.Fatalf("%q came back as %q", want, back)
		}
		if !utf8.Valid(b) {
			t.Fatalf("%q is no text", b)
		}
	})
}
