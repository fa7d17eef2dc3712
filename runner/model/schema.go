package model

import (
	"bytes"
	"encoding/json"
)

// CompactSchema returns a schema without white space, which would be sent with every
// request, or an error if it is not JSON.
func CompactSchema(schema json.RawMessage) (json.RawMessage, error) {
	var plain bytes.Buffer
	if err := json.Compact(&plain, schema); err != nil {
		return nil, err
	}
	return plain.Bytes(), nil
}
