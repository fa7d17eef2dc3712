package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/httpapi"
)

func TestSchemasThatTheAPITakes(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"object"}`: `{"type":"object","additionalProperties":false}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"b":{"type":"integer","description":"how many"},"a":{"type":["string","null"],"format":"date"}},"required":["b","a"]}`: `{"type":"object","properties":{"b":{"type":"integer","description":"how many"},"a":{"type":["string","null"],"format":"date"}},"required":["b","a"],"additionalProperties":false}`,
		`{"type":"object","additionalProperties":false,"properties":{"l":{"type":"array","minItems":1,"items":{"type":"object","properties":{"k":{"const":1},"e":{"enum":["a","b"]}}}}}}`:                               `{"type":"object","additionalProperties":false,"properties":{"l":{"type":"array","minItems":1,"items":{"type":"object","properties":{"k":{"const":1},"e":{"enum":["a","b"]}},"additionalProperties":false}}}}`,
		`{"anyOf":[{"type":"string"},{"$ref":"#/$defs/x"}],"$defs":{"x":{"type":"object","properties":{"a b":{"type":"null"}}}}}`:                                                                                       `{"anyOf":[{"type":"string"},{"$ref":"#/$defs/x"}],"$defs":{"x":{"type":"object","properties":{"a b":{"type":"null"}},"additionalProperties":false}}}`,
		`{"type":"string","title":"t","default":"x"}`: `{"type":"string","title":"t","default":"x"}`,
	} {
		got, ok := strict([]byte(in))
		if d := cmp.Diff(want, string(got)); d != "" || !ok || !json.Valid(got) {
			t.Errorf("%s: ok %v (-want +got):\n%s", in, ok, d)
		}
	}
}

func TestSchemasThatTheAPIRefuses(t *testing.T) {
	var optional, choices []string
	for i := range 25 {
		optional = append(optional, fmt.Sprintf(`"a%d":{"type":"string"}`, i))
		choices = append(choices, fmt.Sprintf(`"a%d":{"type":["string","null"]}`, i))
	}
	for name, in := range map[string]string{
		"no JSON":        `{"type":`,
		"more":           `{"type":"string"} x`,
		"everything":     `true`,
		"nothing said":   `{}`,
		"open object":    `{"type":"object","additionalProperties":true}`,
		"map":            `{"type":"object","additionalProperties":{"type":"string"}}`,
		"bound":          `{"type":"integer","minimum":1}`,
		"length":         `{"type":"string","maxLength":5}`,
		"pattern":        `{"type":"string","pattern":"^a$"}`,
		"closed parts":   `{"allOf":[{"type":"object","properties":{"a":{"type":"null"}}},{"type":"object","properties":{"b":{"type":"null"}}}]}`,
		"closed choices": `{"type":"object","properties":{"a":{"type":"null"}},"anyOf":[{"type":"object","properties":{"b":{"type":"null"}}}]}`,
		"half an object": `{"properties":{"a":{"type":"null"}},"anyOf":[{"type":"object"}]}`,
		"oneOf":          `{"oneOf":[{"type":"string"}]}`,
		"not":            `{"type":"string","not":{"const":"x"}}`,
		"format":         `{"type":"string","format":"regex"}`,
		"many items":     `{"type":"array","items":{"type":"string"},"minItems":2}`,
		"true inside":    `{"type":"array","items":true}`,
		"open inside":    `{"type":"object","properties":{"a":{}}}`,
		"remote":         `{"$ref":"https://example.com/schema"}`,
		"itself":         `{"$ref":"#"}`,
		"recursion":      `{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"x":{"$ref":"#/$defs/x"}}}}}`,
		"odd type":       `{"type":5}`,
		"odd required":   `{"type":"object","required":"a"}`,
		"many optional":  `{"type":"object","properties":{` + strings.Join(optional, ",") + `}}`,
		"many choices":   `{"type":"object","properties":{` + strings.Join(choices, ",") + `},"required":["a0","a1","a2","a3"]}`,
		"deeply nested":  strings.Repeat(`{"type":"array","items":`, 1000) + `{"type":"string"}` + strings.Repeat(`}`, 1000),
		"later keywords": `{"type":"object","unevaluatedProperties":false}`,
	} {
		if got, ok := strict([]byte(in)); ok {
			t.Errorf("%s: %s was taken as %s", name, in, got)
		}
	}
}

// FuzzStrict: what comes out is JSON, and is taken again as it is.
func FuzzStrict(f *testing.F) {
	for _, s := range []string{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"anyOf":[{"type":"null"}],"$defs":{}}`, `{"enum":[1e400]}`, "{\"type\":\"\xff\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		once, ok := strict(schema)
		if !ok {
			return
		}
		if !json.Valid(once) {
			t.Fatalf("%q became %q", schema, once)
		}
		if twice, ok := strict(once); !ok || string(once) != string(twice) {
			t.Fatalf("%q became %q and then %q, %v", schema, once, twice, ok)
		}
	})
}

func TestOutputIsHeldToItsSchemaWhereTheAPICan(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`
	cases := map[string]struct {
		reason                    string
		model, base, params, want string
		native                    bool
	}{
		"own endpoint":   {"the API is known to", "claude-sonnet-4-5", "", `{}`, schema, true},
		"later model":    {"and so is every later model", "claude-opus-5", "https://api.anthropic.com/", `{}`, schema, true},
		"old model":      {"older models cannot", "claude-3-5-haiku-20241022", "", `{}`, schema, false},
		"told to":        {"but whoever knows better says so", "claude-3-5-haiku-20241022", "", `{"structuredOutput":true}`, schema, true},
		"other endpoint": {"of another endpoint nobody knows", "claude-sonnet-4-5", "http://127.0.0.1:1", `{}`, schema, false},
		"it can":         {"unless it is said", "some-model", "http://127.0.0.1:1", `{"structuredOutput":true}`, schema, true},
		"switched off":   {"it can be switched off", "claude-sonnet-4-5", "", `{"structuredOutput":false}`, schema, false},
		"outside":        {"a schema that is refused is told in words", "claude-sonnet-4-5", "", `{"structuredOutput":true}`, `{"type":"string","maxLength":3}`, false},
		"none":           {"without a schema there is nothing to hold to", "claude-sonnet-4-5", "", `{}`, ``, false},
		"with effort":    {"both stand in one member", "claude-sonnet-4-5", "", `{"reasoningEffort":"low"}`, schema, true},
	}
	for name, c := range cases {
		k, err := New(httpapi.Config{Name: "m", Model: c.model, BaseURL: c.base, Parameters: []byte(c.params)}, message.Prompt{Output: []byte(c.want)})
		if err != nil {
			t.Fatal(err)
		}
		body := string(request(k))
		told := strings.Contains(body, "satisfies this JSON Schema")
		if strings.Contains(body, `"json_schema"`) != c.native || told != (c.want != "" && !c.native) || !json.Valid([]byte(body)) {
			t.Errorf("%s: %s: told in words %v: %s", name, c.reason, told, body)
		}
		if name == "with effort" && !strings.Contains(body, `"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}},`) {
			t.Errorf("%s: %s", name, body)
		}
	}
}
