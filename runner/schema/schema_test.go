package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func compile(t testing.TB, raw string) *Schema {
	t.Helper()
	s, err := Compile(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func told(found []Mistake) (lines []string) {
	for _, m := range found {
		lines = append(lines, m.Pointer()+": "+m.Message)
	}
	return lines
}

func TestEveryMistakeIsToldAtOnce(t *testing.T) {
	const object = `{"type":"object","properties":{"path":{"type":"string","minLength":2,"pattern":"^a"},"n":{"type":["integer","null"],"minimum":1,"exclusiveMaximum":9},
		"mode":{"enum":["a","b",3]},"list":{"type":"array","items":{"type":"integer"},"minItems":2,"uniqueItems":true},"deep":{"type":"object","properties":{"x":{"const":true}},"required":["x","y"],"additionalProperties":{"type":"number"}},
		"ref":{"$ref":"#/$defs/name"},"any":{"anyOf":[{"type":"string"},{"type":"object"}]},"all":{"allOf":[{"type":"number"},{"maximum":3}]}},
		"required":["path"],"additionalProperties":false,"$defs":{"name":{"type":"string","maxLength":3}}}`
	for name, c := range map[string]struct {
		reason, schema, value string
		want                  []string
	}{
		"valid":         {"what is right has no mistakes", object, `{"path":"ab","n":null,"mode":3,"list":[1,2],"deep":{"x":true,"y":1,"z":2},"ref":"abc","any":{},"all":2}`, nil},
		"missing":       {"a missing field is named", object, `{}`, []string{`/: field "path" is missing`}},
		"many":          {"all are told", object, `{"pth":"x","path":"b","n":0,"mode":"c"}`, []string{`/mode: want one of "a", "b", 3, got the text "c"`, `/n: want at least 1, got the number 0`, `/path: want at least 2 characters, got 1`, `/path: the text "b" does not match ^a`, `/pth: unknown field "pth"`}},
		"types":         {"a wrong type says what is there", object, `{"path":5,"n":"5","list":{},"deep":[]}`, []string{`/deep: want object, got an array`, `/list: want array, got an object`, `/n: want integer or null, got the text "5"`, `/path: want string, got the number 5`}},
		"fraction":      {"an integer has no fraction", object, `{"path":"ab","n":1.5}`, []string{`/n: want integer or null, got the number 1.5`}},
		"whole float":   {"1.0 is an integer", object, `{"path":"ab","n":1.0}`, nil},
		"nested":        {"places are told", object, `{"path":"ab","deep":{"x":false,"z":"q"},"list":[1,"z",1]}`, []string{`/deep: field "y" is missing`, `/deep/x: want true, got false`, `/deep/z: want number, got the text "q"`, `/list/1: want integer, got the text "z"`, `/list/2: stands twice in the list`}},
		"reference":     {"references are followed", object, `{"path":"ab","ref":"abcd"}`, []string{`/ref: want at most 3 characters, got 4`}},
		"any":           {"the first way is told", object, `{"path":"ab","any":3,"all":5}`, []string{`/all: want at most 3, got the number 5`, `/any: want string, got the number 3`}},
		"bound":         {"an exclusive bound is none of the values", object, `{"path":"ab","n":9}`, []string{`/n: want less than 9, got the number 9`}},
		"never":         {"false allows nothing", `{"properties":{"a":false}}`, `{"a":1}`, []string{`/a: nothing may stand here`}},
		"not an object": {"the whole value", object, `[]`, []string{`/: want object, got an array`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, told(compile(t, c.schema).Check(json.RawMessage(c.value)))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestWhatTheWalkDoesNotKnowIsToldInTheLibrarysWords(t *testing.T) {
	s := compile(t, `{"not":{"type":"object"}}`)
	if got := s.Check(json.RawMessage(`{}`)); len(got) != 1 || got[0].Message == "" {
		t.Errorf("got %v", told(got))
	}
	if got := s.Check(json.RawMessage(`{`)); len(got) != 1 {
		t.Errorf("half a value: %v", told(got))
	}
}

func TestMistakesAreBounded(t *testing.T) {
	s := compile(t, `{"type":"array","items":{"type":"string"}}`)
	if got := s.Check(json.RawMessage("[" + strings.Repeat("1,", 999) + "1]")); len(got) != most {
		t.Errorf("%d mistakes, want %d", len(got), most)
	}
}

func TestBrokenSchemas(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 100) + "true" + strings.Repeat("}", 100)
	for raw, want := range map[string]string{
		`{"type":"strng"}`:                       `/type: want one of array`,
		`{"properties":{"a":{"type":["x"]}}}`:    `/properties/a/type: want one of`,
		`{"properties":[]}`:                      `/properties: want an object of schemas, got an array`,
		`{"required":["a",false]}`:               `/required/1: want a name, got false`,
		`{"required":"a"}`:                       `/required: want a list of names`,
		`{"minLength":-1}`:                       `/minLength: want a whole number`,
		`{"minimum":"x"}`:                        `/minimum: want a number`,
		`{"pattern":"("}`:                        `/pattern: no regular expression`,
		`{"pattern":1}`:                          `/pattern: want a regular expression`,
		`{"enum":[]}`:                            `/enum: want a list of values`,
		`{"anyOf":[]}`:                           `/anyOf: want a list of schemas`,
		`{"anyOf":[3]}`:                          `/anyOf/0: want a schema, got the number 3`,
		`{"uniqueItems":"x"}`:                    `/uniqueItems: want true or false`,
		`{"description":1}`:                      `/description: want a text`,
		`{"$ref":"https://example.com/x"}`:       `/$ref: want a reference inside`,
		`{"$ref":"file:///etc/passwd"}`:          `no other document is read`,
		`{"properties":{"a":{"$ref":"#/none"}}}`: `none`,
		`{"$ref":"#"}`:                           `refers to itself`,
		`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[true,{"$ref":"#/$defs/b"}]},"b":{"if":{"$ref":"#/$defs/a"}}}}`: `refers to itself`,
		`{"$ref":"#name","$anchor":"name"}`:                                   `refers to itself`,
		`{"$ref":"#name"}`:                                                    `"#name" leads to nothing`,
		`{"$anchor":"a b"}`:                                                   `/$anchor: want a name`,
		`{"$ref":"name","$anchor":"name"}`:                                    `/$ref: want a reference inside`,
		`{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`:                 `another schema has the name "x"`,
		`{"properties":{"$anchor":{"type":"string"},"b":{"$ref":"#string"}}}`: `leads to nothing`,
		`{"$defs":{"a":{"$anchor":"a","anyOf":[{"$ref":"#b"}]},"b":{"$anchor":"b","not":{"$ref":"#a"}}}}`: `refers to itself`,
		`{"$dynamicRef":"#x"}`:             `only references by place`,
		`{"properties":{"a":{"$id":"x"}}}`: `only the whole schema may have`,
		laughs():                           `more than 1000 schemas`,
		`"text"`:                           `/: want a schema`,
		`{`:                                `unexpected end`,
		deep:                               `nested deeper than 64`,
	} {
		_, err := Compile(json.RawMessage(raw))
		invalid, ok := errors.AsType[*InvalidError](err)
		if !ok || !strings.Contains(invalid.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", raw, err, want)
		}
	}
}

// laughs is a schema that doubles its work twenty times.
func laughs() string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 20 {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	b.WriteString(`"d20":{"type":"object"}}}`)
	return b.String()
}

func TestSchemaMayReferToItselfDeeperDown(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}},"required":["name"]}`)
	if got := s.Check(json.RawMessage(`{"name":"a","children":[{"name":"b","children":[{"name":"c"}]}]}`)); got != nil {
		t.Errorf("got %v", told(got))
	}
	if diff := cmp.Diff([]string{`/children/0/children/0: field "name" is missing`}, told(s.Check(json.RawMessage(`{"name":"a","children":[{"name":"b","children":[{}]}]}`)))); diff != "" {
		t.Error(diff)
	}
}

func TestPropertiesAndTypes(t *testing.T) {
	s := compile(t, `{"properties":{"b":{"type":"integer"},"a":{"type":["string","null"]},"c":true}}`)
	if diff := cmp.Diff([]string{"a", "b", "c"}, s.Properties()); diff != "" {
		t.Error(diff)
	}
	if s.Type("b") != "integer" || s.Type("a") != "" || s.Type("c") != "" || s.Type("d") != "" {
		t.Error("only a single type is a type")
	}
	if got := compile(t, "true").Properties(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// The walk never reports a value that the library accepts, and always reports one that it
// refuses.
func FuzzCheck(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"a":"x"}`)
	f.Add(`{"$ref":"#/$defs/x","$defs":{"x":{"$ref":"#"}}}`, `1`)
	f.Add(`{"oneOf":[{"type":"string"},{"type":"string"}]}`, `"x"`)
	f.Add(`{"pattern":"a+b"}`, `"\ud800"`)
	f.Fuzz(func(t *testing.T, raw, value string) {
		if len(raw) > 1<<12 || len(value) > 1<<12 {
			return
		}
		s, err := Compile(json.RawMessage(raw))
		if err != nil {
			return
		}
		for _, m := range s.Check(json.RawMessage(value)) {
			if m.Message == "" {
				t.Errorf("an empty mistake at %s of %s against %s", m.Pointer(), value, raw)
			}
		}
	})
}

func BenchmarkCheckValid(b *testing.B) {
	s := compile(b, `{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}},"required":["command"],"additionalProperties":false}`)
	b.ReportAllocs()
	for b.Loop() {
		if s.Check(json.RawMessage(`{"command":"echo 1 >> file","timeout":1000}`)) != nil {
			b.Fatal("refused")
		}
	}
}
