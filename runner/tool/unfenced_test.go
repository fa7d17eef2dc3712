package tool

import (
	"strings"
	"testing"
)

func TestTheOutputIsTheValueThatWasChecked(t *testing.T) {
	schema, err := NewSchema([]byte(`{"type":"object","properties":{"v":{"enum":["good"]},"c":{}},"required":["v"]}`))
	if err != nil {
		t.Fatal(err)
	}
	const good = `{"v":"good"}`
	for name, c := range map[string]struct{ reason, text, wrong string }{
		"plain":             {"nothing is around it", "\n" + good + " ", ""},
		"fence":             {"models add one", "```json\n" + good + "\n```", ""},
		"fence in capitals": {"the word is not the JSON", "```JSON\n" + good + "\n```\n", ""},
		"fence left open":   {"the answer is whole", "```\n" + good, ""},
		"text in front":     {"nobody knows which part is meant", "Here: " + good, "no JSON"},
		"text behind":       {"nobody knows which part is meant", "```json\n" + good + "\n```\nDone.", "no JSON"},
		"two values":        {"one is asked for", good + good, "no JSON"},
		"a key twice":       {"two readers may see two values", `{"v":"evil","v":"good"}`, `the key "v" stands twice`},
		"a key twice, deep": {"two readers may see two values", `{"v":"good","c":[{"a":{"b":1,"b":2}}]}`, `the key "b" stands twice`},
		"deep":              {"readers give up where we do not", `{"v":"good","c":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}", "nested"},
		"another value":     {"the schema decides", `{"v":"bad"}`, "/v"},
	} {
		wrong := schema.CheckOutput(c.text)
		if (wrong == "") != (c.wrong == "") || !strings.Contains(wrong, c.wrong) {
			t.Errorf("%s (%s): %q, want %q", name, c.reason, wrong, c.wrong)
		}
		if value := Unfenced(c.text); wrong == "" && value != good {
			t.Errorf("%s (%s): the output is %q", name, c.reason, value)
		}
	}
}
