package audit

import _ "embed" // the schemas are files that people read, too

//go:generate go test -run TestPublishedSchemasAreFresh -update .

// RecordSchema is the JSON Schema (2020-12) of one line of an audit log, and so of
// "agentctl audit export".
//
//go:embed audit.schema.json
var RecordSchema []byte

// StatementSchema is the JSON Schema (2020-12) of what a receipt signs.
//
//go:embed receipt.schema.json
var StatementSchema []byte
