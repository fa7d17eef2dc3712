package turns

import (
	"bytes"
	"encoding/json"
)

// Contract is the system prompt with what the final answer must be, in words: for
// a model that its provider does not hold to a schema. Without a schema it is the
// system prompt as it is.
func Contract(system string, schema json.RawMessage) string {
	if len(schema) == 0 {
		return system
	}
	if plain, err := Plain(schema); err == nil {
		schema = plain
	}
	if system != "" {
		system += "\n\n"
	}
	return system + "Your final answer must be one JSON value that satisfies this JSON Schema, and nothing else: no other text, no code fence.\n" + string(schema)
}

// Plain returns a schema without white space, which would be sent with every
// request, or says that it is no JSON.
func Plain(schema json.RawMessage) (json.RawMessage, error) {
	var plain bytes.Buffer
	if err := json.Compact(&plain, schema); err != nil {
		return nil, err
	}
	return plain.Bytes(), nil
}
