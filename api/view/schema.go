package view

import _ "embed" // the schema is a file that people read, too

//go:generate go test -run TestPublishedSchemaIsFresh -update .

// ResultSchema is the JSON Schema (2020-12) of a Result, and so of
// "agentctl run -o json".
//
//go:embed result.schema.json
var ResultSchema []byte
