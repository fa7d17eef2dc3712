package event

import _ "embed" // the schema is a file that people read, too

//go:generate go test -run TestPublishedSchemaIsFresh -update .

// JSONSchema is the JSON Schema (2020-12) of one line of a journal, and of
// "agentctl run -o jsonl". It describes the types this version writes; a reader
// should skip types it does not know.
//
//go:embed event.schema.json
var JSONSchema []byte
