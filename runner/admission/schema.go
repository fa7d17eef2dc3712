package admission

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/runner/manifest"
	"agentctl.dev/agentctl/runner/schema"
)

// mistake is a place in a JSON value, as a path that follows that of the
// value, and what is wrong there.
type mistake struct {
	path, message string
	// missing is the name of a field that is not there.
	missing string
}

// schema checks a JSON Schema that a manifest holds.
func (a *admitter) schema(d *manifest.Document, at string, raw json.RawMessage, object bool) {
	if len(raw) == 0 {
		return // reported as missing
	}
	var top struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(raw, &top); err != nil {
		a.add(d.Errorf(at, "a JSON Schema is a mapping"))
		return
	}
	if object && top.Type != "object" {
		f := d.Errorf(at, "the schema's type must be object, because arguments have names").With("write type: object")
		if top.Type != nil {
			f = d.Errorf(at+".type", "the schema's type must be object, because arguments have names").With("write type: object")
		}
		a.add(f)
	}
	_, err := schema.Compile(raw)
	if invalid, ok := errors.AsType[*schema.InvalidError](err); ok {
		for _, m := range placed(invalid.Mistakes) {
			a.add(d.Errorf(at+m.path, "not a JSON Schema: %s", m.message))
		}
	}
}

// check holds a value against a schema.
func check(s *schema.Schema, raw json.RawMessage) []mistake { return placed(s.Check(raw)) }

func placed(found []schema.Mistake) []mistake {
	all := make([]mistake, len(found))
	for i, m := range found {
		all[i] = mistake{pathOf(m.At), m.Message, m.Missing}
	}
	return all
}

func pathOf(location []string) string {
	path := ""
	for _, part := range location {
		if i, err := strconv.Atoi(part); err == nil && i >= 0 {
			path = manifest.Index(path, i)
			continue
		}
		if path == "" {
			path = "."
		}
		path = strings.Replace(manifest.Join(path, part), "..", ".", 1)
	}
	return path
}
