package openai

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/httpapi"
)

func TestStrictSchemas(t *testing.T) {
	object := func(properties, required, more string) string {
		return `{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false` + more + `}`
	}
	nested := object(`"a":{"type":"string"}`, `"a"`, "")
	for range 11 {
		nested = object(`"a":`+nested, `"a"`, "")
	}
	for name, c := range map[string]struct {
		reason, schema string
		want           bool
	}{
		"plain":           {"all members are required and there are no others", object(`"a":{"type":"string","description":"d"}`, `"a"`, ""), true},
		"empty":           {"an object without members is one", object("", "", ""), true},
		"optional":        {"an optional member is refused", object(`"a":{"type":"string"},"b":{"type":"string"}`, `"a"`, ""), false},
		"open":            {"an object that takes more is refused", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, false},
		"open inside":     {"at any depth", object(`"a":{"type":"object","properties":{"b":{}}}`, `"a"`, ""), false},
		"nullable":        {"a member may be null instead", object(`"a":{"type":["string","null"]}`, `"a"`, ""), true},
		"nullable object": {"an object may be null, and is judged", object(`"a":{"type":["object","null"]}`, `"a"`, ""), false},
		"array":           {"items are judged", object(`"a":{"type":"array","items":`+object(`"b":{"type":"number"}`, `"b"`, "")+`,"minItems":1}`, `"a"`, ""), true},
		"array of open":   {"items are judged", object(`"a":{"type":"array","items":{"type":"object"}}`, `"a"`, ""), false},
		"choice":          {"choices are judged", object(`"a":{"anyOf":[{"type":"string"},{"type":"null"}]}`, `"a"`, ""), true},
		"open choice":     {"choices are judged", object(`"a":{"anyOf":[{"type":"string"},{"type":"object"}]}`, `"a"`, ""), false},
		"choice of roots": {"the root itself may be no choice", `{"type":"object","anyOf":[{"type":"string"}]}`, false},
		"reference":       {"definitions are judged, references are taken", object(`"a":{"$ref":"#/$defs/x"}`, `"a"`, `,"$defs":{"x":{"type":"string","enum":["u","v"]}}`), true},
		"enum":            {"values without a type are a type", object(`"a":{"enum":[1,2]},"b":{"const":"x"}`, `"a","b"`, ""), true},
		"no type":         {"a member of any kind is refused", object(`"a":{}`, `"a"`, ""), false},
		"keyword":         {"a word the API does not know is refused", object(`"a":{"type":"string","minLength":1}`, `"a"`, ""), false},
		"all of":          {"a word the API does not know is refused", object(`"a":{"allOf":[{"type":"string"}]}`, `"a"`, ""), false},
		"default":         {"a word the API does not know is refused", object(`"a":{"type":"string","default":"x"}`, `"a"`, ""), false},
		"format":          {"formats that are known", object(`"a":{"type":"string","format":"date-time","pattern":"^2"}`, `"a"`, ""), true},
		"other format":    {"and others", object(`"a":{"type":"string","format":"uri"}`, `"a"`, ""), false},
		"deep":            {"the API has an end", nested, false},
		"many values":     {"the API has an end", object(`"a":{"enum":[1`+strings.Repeat(",1", 1000)+`]}`, `"a"`, ""), false},
		"boolean":         {"true is a schema, and says nothing", object(`"a":true`, `"a"`, ""), false},
		"broken":          {"no JSON", `{"type":`, false},
		"odd values":      {"words with the wrong values", `{"type":"object","properties":[],"required":[],"additionalProperties":false}`, false},
		"odd enum":        {"words with the wrong values", object(`"a":{"enum":1}`, `"a"`, ""), false},
		"odd choice":      {"words with the wrong values", object(`"a":{"anyOf":1}`, `"a"`, ""), false},
	} {
		if got := strict([]byte(c.schema)); got != c.want {
			t.Errorf("%s: strict is %v, %s: %s", name, got, c.reason, c.schema)
		}
	}
}

func TestSchemasAreSentWhereTheyAreTaken(t *testing.T) {
	const compatible = "http://host/v1"
	loose := `{ "type": "object", "properties": {"a": {"type": "string"}} }`
	for name, c := range map[string]struct {
		reason, baseURL, parameters, schema, chat string
	}{
		"own":         {"OpenAI's own endpoint has it", "", `{}`, `{"type":"object","properties":{},"required":[],"additionalProperties":false}`, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{},"required":[],"additionalProperties":false},"strict":true}}`},
		"loose":       {"what is outside of the strict subset is sent without strictness", "", `{}`, loose, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{"a":{"type":"string"}}},"strict":false}}`},
		"switched":    {"unless the Model says no", "", `{"structuredOutput":false}`, loose, ``},
		"compatible":  {"of another endpoint nobody knows", compatible, `{}`, loose, ``},
		"declared":    {"unless the Model says so", compatible, `{"structuredOutput": true}`, loose, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{"a":{"type":"string"}}},"strict":false}}`},
		"list":        {"the API takes objects only", "", `{}`, `{"type":"array"}`, ``},
		"no object":   {"and nothing broken", "", `{}`, `{"type":"object"`, ``},
		"by hand":     {"a format that is given by hand stays", "", `{"extra":{"response_format":{"type":"json_object"}}}`, loose, ``},
		"none wanted": {"there may be no schema", "", `{}`, ``, ``},
	} {
		open, err := New(httpapi.Config{Name: "m", Model: "x", BaseURL: c.baseURL, Parameters: []byte(c.parameters)}, message.Prompt{Output: []byte(c.schema)})
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Contains(string(open.history), "satisfies this JSON Schema")
		if got := string(open.withTool); got != "]"+c.chat+"}" || told != (c.chat == "" && c.schema != "") {
			t.Errorf("%s: the request ends in %s, told in words %v: %s", name, got, told, c.reason)
		}
		if string(open.aside) != "]}" {
			t.Errorf("%s: a question beside the conversation ends in %s", name, open.aside)
		}
		_ = open.Close()
	}
}

func TestTheKeyOfTheCacheIsForOpenAIOnly(t *testing.T) {
	for name, c := range map[string]struct{ baseURL, parameters, want string }{
		"own":        {"", ``, `],"prompt_cache_key":"k"}`},
		"compatible": {"http://host/v1", ``, `]}`},
		"by hand":    {"", `{"extra":{"prompt_cache_key":"mine"}}`, `]}`},
	} {
		open, err := New(httpapi.Config{Name: "m", Model: "x", BaseURL: c.baseURL, Parameters: []byte(c.parameters)}, message.Prompt{CacheKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(open.withTool); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		_ = open.Close()
	}
}
