package model

import "encoding/json"

// OutputContract is the system prompt with what the final answer must be, in words: for
// a model that its provider does not hold to a schema. Without a schema it is the
// system prompt as it is.
func OutputContract(system string, schema json.RawMessage) string {
	if len(schema) == 0 {
		return system
	}
	if plain, err := CompactSchema(schema); err == nil {
		schema = plain
	}
	if system != "" {
		system += "\n\n"
	}
	return system + "Your final answer must be one JSON value that satisfies this JSON Schema, and nothing else: no other text, no code fence.\n" + string(schema)
}
