package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	msg "agentctl.dev/agentctl/api/message"
)

// maxArguments bounds what a model may write as the arguments of one call.
const maxArguments = 8 << 20

// Schema holds arguments against the JSON Schema of a tool.
type Schema struct {
	compiled   *jsonschema.Schema
	properties []string
	types      map[string]string // property → the only type its schema allows
}

// NewSchema compiles a JSON Schema (2020-12). No reference leads outside of it.
func NewSchema(raw json.RawMessage) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("parse the schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	s := &Schema{compiled: compiled, types: map[string]string{}}
	object, _ := doc.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	for name, p := range properties {
		s.properties = append(s.properties, name)
		if p, ok := p.(map[string]any); ok {
			if t, ok := p["type"].(string); ok {
				s.types[name] = t
			}
		}
	}
	slices.Sort(s.properties)
	return s, nil
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: a schema may not refer to another document", url)
}

// Check parses what a model wrote and returns it as a JSON object that satisfies
// the schema. All that is wrong is told at once, in a *message.CallError.
// Nothing is ever completed or closed: half a call is no call.
func (s *Schema) Check(raw string) (json.RawMessage, error) {
	if strings.TrimSpace(raw) == "" {
		raw = "{}"
	}
	if len(raw) > maxArguments {
		return nil, badJSON("the arguments are longer than %d bytes", maxArguments)
	}
	if err := strictObject(raw); err != nil {
		return nil, err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
	if err != nil {
		return nil, badJSON("%v", err)
	}
	err = s.compiled.Validate(value)
	if err != nil && s.coerce(value) && s.compiled.Validate(value) == nil {
		return json.Marshal(value)
	}
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return nil, &msg.CallError{Code: msg.CodeSchema, Text: s.explain(invalid)}
	}
	if err != nil {
		return nil, &msg.CallError{Code: msg.CodeSchema, Text: err.Error()}
	}
	return json.RawMessage(raw), nil
}

// CheckOutput holds a final answer against the schema. It returns what is wrong,
// in words for the model, or "". A fence around the JSON is read over: models
// add one however they are asked.
func (s *Schema) CheckOutput(text string) string {
	text = strings.TrimSpace(text)
	if body, ok := strings.CutPrefix(text, "```"); ok {
		body = strings.TrimPrefix(body, "json")
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return "the answer is no JSON: " + err.Error()
	}
	err = s.compiled.Validate(value)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return s.mistakes(invalid)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func badJSON(format string, args ...any) error {
	return &msg.CallError{Code: msg.CodeBadJSON, Text: "the arguments are no valid JSON object: " + fmt.Sprintf(format, args...) + ". Nothing was run; write the whole call again."}
}

// strictObject refuses what encoding/json would read over: text after the
// object, and a key that stands twice, of which two readers may see two values.
func strictObject(raw string) error {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	t, err := dec.Token()
	if err != nil || t != json.Delim('{') {
		if err == nil {
			err = fmt.Errorf("they begin with %v", t)
		}
		return badJSON("%s", position(err, dec))
	}
	if err := uniqueKeys(dec, 1); err != nil {
		return badJSON("%s", position(err, dec))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return badJSON("there is text after the object (byte %d)", dec.InputOffset())
	}
	return nil
}

func position(err error, dec *json.Decoder) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("they end in the middle (byte %d)", dec.InputOffset())
	}
	return fmt.Sprintf("%v (byte %d)", err, dec.InputOffset())
}

// maxDepth bounds how deep arguments may nest.
const maxDepth = 64

// uniqueKeys reads the rest of an object whose brace has been read.
func uniqueKeys(dec *json.Decoder, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	keys := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if keys[key] {
			return fmt.Errorf("the key %q stands twice", key)
		}
		keys[key] = true
		if err := uniqueValue(dec, depth); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

func uniqueValue(dec *json.Decoder, depth int) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('{'):
		return uniqueKeys(dec, depth+1)
	case json.Delim('['):
		if depth >= maxDepth {
			return fmt.Errorf("nested deeper than %d", maxDepth)
		}
		for dec.More() {
			if err := uniqueValue(dec, depth+1); err != nil {
				return err
			}
		}
		_, err = dec.Token()
	}
	return err
}

// coerce reads "5" as 5 where the schema of the property allows only a number:
// the one reading there is. It says whether it changed anything.
func (s *Schema) coerce(value any) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	changed := false
	for name, want := range s.types {
		text, ok := object[name].(string)
		if !ok {
			continue
		}
		switch want {
		case "integer", "number":
			if _, err := strconv.ParseFloat(text, 64); err == nil && json.Valid([]byte(text)) {
				object[name], changed = json.Number(text), true
			}
		case "boolean":
			if text == "true" || text == "false" {
				object[name], changed = text == "true", true
			}
		}
	}
	return changed
}

// explain says what is wrong with arguments and what the tool takes.
func (s *Schema) explain(err *jsonschema.ValidationError) string {
	text := "the arguments do not satisfy the tool's schema:\n" + s.mistakes(err)
	if len(s.properties) > 0 {
		text += "\nThe tool takes: " + strings.Join(s.properties, ", ") + "."
	}
	return text
}

// mistakes lists every mistake with the place, what is wanted and what came.
func (s *Schema) mistakes(err *jsonschema.ValidationError) string {
	printer := message.NewPrinter(language.English)
	var lines []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, c := range e.Causes {
			walk(c)
		}
		if len(e.Causes) > 0 {
			return
		}
		line := "- /" + strings.Join(e.InstanceLocation, "/") + ": " + e.ErrorKind.LocalizedString(printer)
		if extra, ok := e.ErrorKind.(*kind.AdditionalProperties); ok && len(e.InstanceLocation) == 0 {
			for _, name := range extra.Properties {
				if near := Nearest(name, s.properties); near != "" {
					line += fmt.Sprintf(" (did you mean %q?)", near)
				}
			}
		}
		lines = append(lines, line)
	}
	walk(err)
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// Canonical writes JSON with sorted keys and without white space, so that equal
// values are equal bytes. The named members of the object are left out.
func Canonical(raw json.RawMessage, without ...string) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, err
	}
	if object, ok := value.(map[string]any); ok {
		for _, name := range without {
			delete(object, name)
		}
	}
	return json.Marshal(value)
}
