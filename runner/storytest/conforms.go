package storytest

import (
	"encoding/json"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/testscript"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
)

// conforms compares stdout, and everything on it, with a published schema:
// "conforms result" expects one object, "conforms event" and "conforms audit" one on each
// line.
func conforms(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: conforms result|event|audit")
	}
	schema := view.ResultSchema
	switch args[0] {
	case "event":
		schema = event.JSONSchema
	case "audit":
		schema = audit.RecordSchema
	}
	var s jsonschema.Schema
	ts.Check(json.Unmarshal(schema, &s))
	resolved, err := s.Resolve(nil)
	ts.Check(err)
	values := []string{ts.ReadFile("stdout")}
	if args[0] != "result" {
		values = strings.Split(strings.TrimSuffix(values[0], "\n"), "\n")
	}
	for _, text := range values {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			ts.Fatalf("not JSON: %v: %q", err, text)
		}
		if err := resolved.Validate(v); err != nil {
			ts.Fatalf("%s does not satisfy the schema: %v", text, err)
		}
	}
}
