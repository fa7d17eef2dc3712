package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"agentctl.dev/agentctl/runner/manifest"
)

// mistake is a place in a JSON value, as a path that follows that of the
// value, and what is wrong there.
type mistake struct {
	path, message string
	// missing is the name of a field that is not there.
	missing string
}

// schemaName is the address under which a schema of a manifest is compiled.
const schemaName = "manifest:///schema.json"

// noLoader refuses to follow a $ref out of the manifest: admission reads no
// other file and opens no connection.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is outside of the manifest", url)
}

// compile makes a JSON Schema (2020-12) ready for use.
func compile(raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaName, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaName)
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
	if _, err := compile(raw); err != nil {
		for _, m := range schemaMistakes(err) {
			a.add(d.Errorf(at+m.path, "not a JSON Schema: %s", m.message))
		}
	}
}

// schemaMistakes turns the compiler's error into places.
func schemaMistakes(err error) []mistake {
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if v, ok := errors.AsType[*jsonschema.ValidationError](invalid.Err); ok {
			return leaves(v)
		}
	}
	if load, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return []mistake{{message: load.URL + " is outside of the manifest, and references are not followed there"}}
	}
	text := strings.ReplaceAll(err.Error(), schemaName, "")
	if i := strings.LastIndex(text, "\n"); i >= 0 {
		text = text[i+1:]
	}
	return []mistake{{message: strings.TrimSpace(strings.TrimPrefix(text, "jsonschema: "))}}
}

// check holds a value against a schema.
func check(s *jsonschema.Schema, raw json.RawMessage) []mistake {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return []mistake{{message: err.Error()}}
	}
	err = s.Validate(value)
	if v, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return leaves(v)
	}
	return nil
}

// leaves are the causes that have no cause of their own.
func leaves(v *jsonschema.ValidationError) []mistake {
	const most = 20
	printer := message.NewPrinter(language.English)
	var all []mistake
	var walk func(v *jsonschema.ValidationError)
	walk = func(v *jsonschema.ValidationError) {
		causes := v.Causes
		switch v.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf:
			causes = causes[:min(1, len(causes))] // of several ways to be right, the first is told
		}
		for _, c := range causes {
			walk(c)
		}
		if len(v.Causes) == 0 && len(all) < most {
			all = append(all, worded(v, printer)...)
		}
	}
	walk(v)
	return all
}

// worded puts the usual mistakes into the words of this program.
func worded(v *jsonschema.ValidationError, printer *message.Printer) []mistake {
	at := pathOf(v.InstanceLocation)
	var all []mistake
	switch k := v.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			all = append(all, mistake{at, fmt.Sprintf("field %q is missing", name), name})
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			all = append(all, mistake{pathOf(append(slices.Clone(v.InstanceLocation), name)), fmt.Sprintf("unknown field %q", name), ""})
		}
	default:
		all = append(all, mistake{at, k.LocalizedString(printer), ""})
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
