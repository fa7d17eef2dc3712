package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestASchemaIsFoundByItsAnchor(t *testing.T) {
	s, err := Compile(json.RawMessage(`{
		"type":"object","properties":{"home":{"$ref":"#address"},"tree":{"$ref":"#node"},"$anchor":{"type":"string"}},
		"$defs":{
			"address":{"$anchor":"address","type":"object","required":["street"],"properties":{"street":{"type":"string"}}},
			"node":{"$anchor":"node","type":"object","properties":{"next":{"$ref":"#node"}},"additionalProperties":false}
		}}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{"home":{"street":"x"},"tree":{"next":{"next":{}}},"$anchor":"a"}`: "",
		`{"home":{"street":3}}`:             "/home/street: want string",
		`{"home":{}}`:                       `/home: field "street" is missing`,
		`{"tree":{"next":{"last":{}}}}`:     `/tree/next/last: unknown field "last"`,
		`{"home":{"street":"x"},"tree":[]}`: "/tree: want object",
	} {
		var texts []string
		for _, m := range s.Check(json.RawMessage(value)) {
			texts = append(texts, m.Pointer()+": "+m.Message)
		}
		got := strings.Join(texts, "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", value, got, want)
		}
	}
}
