package tool

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

const readSchema = `{"type":"object","properties":{"path":{"type":"string","minLength":1},"limit":{"type":"integer"},"all":{"type":"boolean"},"mode":{"enum":["a","b"]},"list":{"type":"array","items":{"type":"integer"}}},"required":["path"],"additionalProperties":false}`

func TestArguments(t *testing.T) {
	s, err := NewSchema(json.RawMessage(readSchema))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reason, raw, want string
		code              message.ErrorCode
		text              []string
	}{
		"valid":         {reason: "arguments pass as they were written", raw: `{"path": "x",  "limit": 3}`, want: `{"path": "x",  "limit": 3}`},
		"coerced":       {reason: "a number in quotes has one reading", raw: `{"path":"x","limit":"5","all":"true"}`, want: `{"all":true,"limit":5,"path":"x"}`},
		"not coerced":   {reason: "half a number has none", raw: `{"path":"x","limit":"5 lines"}`, code: message.CodeSchema, text: []string{"/limit", "integer"}},
		"big number":    {reason: "numbers keep their digits", raw: `{"path":"x","limit":12345678901234567890}`, want: `{"path":"x","limit":12345678901234567890}`},
		"all mistakes":  {reason: "every mistake is told at once", raw: `{"pth":"x","limit":"y","mode":"c","list":[1,"z"]}`, code: message.CodeSchema, text: []string{"path", `did you mean "path"`, "/limit", "/mode", "/list/1"}},
		"truncated":     {reason: "half a call is never completed", raw: `{"path":"x`, code: message.CodeBadJSON, text: []string{"Nothing was run"}},
		"cut after key": {reason: "half a call is never completed", raw: `{"path":`, code: message.CodeBadJSON},
		"duplicate":     {reason: "two readers may see two values", raw: `{"path":"x","path":"y"}`, code: message.CodeBadJSON, text: []string{`"path" stands twice`}},
		"nested twice":  {reason: "in nested objects too", raw: `{"path":"x","list":[{"a":1,"a":2}]}`, code: message.CodeBadJSON, text: []string{`"a" stands twice`}},
		"half a char":   {reason: "readers differ about half a character", raw: `{"path":"x\ud83d"}`, code: message.CodeBadJSON, text: []string{"no character"}},
		"other half":    {reason: "in names too", raw: `{"path":"x","\ude00":1}`, code: message.CodeBadJSON},
		"half, escaped": {reason: "an escaped backslash begins no escape", raw: `{"path":"x\\ud83d \ud83d\ude00"}`, want: `{"path":"x\\ud83d \ud83d\ude00"}`},
		"bytes":         {reason: "bytes that are no text are read in two ways", raw: "{\"path\":\"x\xff\"}", code: message.CodeBadJSON},
		"array":         {reason: "arguments are an object", raw: `["x"]`, code: message.CodeBadJSON},
		"text":          {reason: "arguments are an object", raw: `path=x`, code: message.CodeBadJSON},
		"more":          {reason: "nothing follows the object", raw: `{"path":"x"} {"path":"y"}`, code: message.CodeBadJSON, text: []string{"after the object"}},
		"empty":         {reason: "nothing is an empty object", raw: "", code: message.CodeSchema, text: []string{"path"}},
		"deep":          {reason: "nesting is bounded", raw: `{"path":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, code: message.CodeBadJSON, text: []string{"deeper"}},
		"huge":          {reason: "size is bounded", raw: `{"path":"` + strings.Repeat("x", maxArguments) + `"}`, code: message.CodeBadJSON},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Check(c.raw)
			if c.code == "" {
				if err != nil || string(got) != c.want {
					t.Errorf("%s: got %s, %v; want %s", c.reason, got, err, c.want)
				}
				return
			}
			wrong, ok := errors.AsType[*message.CallError](err)
			if !ok || wrong.Code != c.code {
				t.Fatalf("%s: got %s, %v; want code %s", c.reason, got, err, c.code)
			}
			for _, want := range c.text {
				if !strings.Contains(wrong.Text, want) {
					t.Errorf("%s: %q does not tell %q", c.reason, wrong.Text, want)
				}
			}
		})
	}
}

func TestSchemaMayNotReachOutside(t *testing.T) {
	for _, raw := range []string{
		`{"$ref":"https://example.com/schema.json"}`, `{"$ref":"file:///etc/passwd"}`, `{"type":"nonsense"}`, `{"type":`, ``,
	} {
		if _, err := NewSchema(json.RawMessage(raw)); err == nil {
			t.Errorf("%s was compiled", raw)
		}
	}
}

func TestCanonicalIsTheSameForEqualValues(t *testing.T) {
	a, err := Canonical(json.RawMessage(`{"b":1.0,"a":{"y":[1, 2],"x":"ü"},"why":"this"}`), "why")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Canonical(json.RawMessage(`{ "why":"that", "a":{"x":"\u00fc","y":[1,2]}, "b":1.0 }`), "why")
	if err != nil || string(a) != string(b) {
		t.Errorf("%s and %s differ (%v)", a, b, err)
	}
}

func FuzzArguments(f *testing.F) {
	s, err := NewSchema(json.RawMessage(readSchema))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`{"path":"x"}`, `{"path":"x","limit":"5"}`, `{`, `{"path":"x","path":1}`, `[]`, `{"path":"\ud800"}`, "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := s.Check(raw)
		if err != nil {
			return
		}
		var v struct {
			Path *string `json:"path"`
		}
		if json.Unmarshal(got, &v) != nil || v.Path == nil {
			t.Errorf("%q was taken as %s", raw, got)
		}
		if again, err := s.Check(string(got)); err != nil {
			t.Errorf("%s is not stable: %s, %v", got, again, err)
		}
	})
}
