package gemini

import "testing"

func TestSupportedSchemas(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":["string","null"],"description":"d"},"b":{"type":"array","items":{"enum":["x",1]},"minItems":1}},"required":["a"],"additionalProperties":false}`: true,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"string","default":"x"}`:                                                                                                   true,
		`{"anyOf":[{"type":"string"},{"type":"number","minimum":0}]}`:                                                                                                                                true,
		`{"type":"array","prefixItems":[{"type":"string"}]}`:                                                                                                                                         true,
		`{"type":"object","additionalProperties":{"type":"string"}}`:                                                                                                                                 true,
		`{"$defs":{"p":{"type":"object","properties":{"x":{"type":"number"}}}},"type":"object","properties":{"a":{"$ref":"#/$defs/p"},"b":{"$ref":"#/$defs/p"}}}`:                                    true,

		// Keywords that the API ignores, wherever they are.
		`{"type":"string","minLength":1}`:                                      false,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"x"}}}`: false,
		`{"anyOf":[{"type":"string"},{"const":"x"}]}`:                          false,
		`{"type":"array","items":{"not":{}}}`:                                  false,
		`{"type":"array","prefixItems":[{"if":{}}]}`:                           false,
		`{"type":"object","additionalProperties":{"format":"date","x":1}}`:     false,
		`{"$defs":{"p":{"maxLength":1}},"type":"string"}`:                      false,
		`{"enum":[true]}`: false,
		`{"enum":"x"}`:    false,
		// References the API does not follow.
		`{"$ref":"https://example.com/schema"}`: false,
		`{"$ref":"#/$defs/none"}`:               false,
		`{"$ref":5}`:                            false,
		`{"$defs":{"p":{"type":"string"}},"$ref":"#/$defs/p","title":"beside it"}`:                        false,
		`{"$defs":{"p":{"type":"object","properties":{"p":{"$ref":"#/$defs/p"}}}},"$ref":"#/$defs/p"}`:    false,
		`{"$defs":{"a":{"items":{"$ref":"#/$defs/b"}},"b":{"items":{"$ref":"#/$defs/a"}}},"type":"null"}`: false,
		// Not schemas of an answer.
		`true`: false, `{}`: false, `[]`: false, ``: false, `{"properties":5}`: false, `{"anyOf":{}}`: false, `{"items":[{}]}`: false, `{"items":true}`: false,
	} {
		if got := supported([]byte(schema)); got != want {
			t.Errorf("%s: %v, want %v", schema, got, want)
		}
	}
}

func FuzzSupported(f *testing.F) {
	for _, s := range []string{`{"$defs":{"a":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, `{"anyOf":[{"type":"string"}]}`, `{"items":{"items":{}}}`, `{"enum":[null]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		if supported(schema) && (len(schema) == 0 || schema[0] == '[') {
			t.Errorf("%q is no schema", schema)
		}
	})
}
