package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/schema"
)

// maxArguments bounds what a model may write as the arguments of one call.
const maxArguments = 8 << 20

// Schema holds arguments against the JSON Schema of a tool.
type Schema struct{ schema *schema.Schema }

// NewSchema compiles a JSON Schema (2020-12). No reference leads outside of it.
func NewSchema(raw json.RawMessage) (*Schema, error) {
	s, err := schema.Compile(raw)
	if err != nil {
		return nil, err
	}
	return &Schema{s}, nil
}

// Check parses what a model wrote and returns it as a JSON object that
// satisfies the schema. All errors are reported at once, in a
// *message.CallError. Check never completes or closes anything: half a call is
// not a call.
func (s *Schema) Check(raw string) (json.RawMessage, error) {
	if strings.TrimSpace(raw) == "" {
		raw = "{}"
	}
	if len(raw) > maxArguments {
		return nil, badJSON("the arguments are longer than %d bytes", maxArguments)
	}
	if !utf8.ValidString(raw) || halfCharacter(raw) {
		return nil, badJSON("they hold bytes or escapes that are no character")
	}
	if err := strictObject(raw); err != nil {
		return nil, err
	}
	args, found := s.read(raw)
	if len(found) > 0 {
		return nil, &message.CallError{Code: message.CodeSchema, Text: s.explain(found)}
	}
	return args, nil
}

// Undeclared returns the inputs that the schema admits without naming them, and
// the names that it has.
func (s *Schema) Undeclared(names []string) (unknown, declared []string) {
	return s.schema.Undeclared(names), s.schema.Properties()
}

// Defaults are the values that the schema names for inputs that are not given, by their names.
func (s *Schema) Defaults() map[string]json.RawMessage { return s.schema.Defaults() }

// InputsError says what is wrong with the data of a run, in words for people.
type InputsError struct {
	// Missing are the names of inputs that have to be given.
	Missing []string
	text    string
}

func (e *InputsError) Error() string { return e.text }

// CheckInputs validates the data of a run against the schema; its error is an
// *InputsError. Values from a command line are text; they are read as numbers and
// booleans where the schema expects those.
func (s *Schema) CheckInputs(raw json.RawMessage) (json.RawMessage, error) {
	data, found := s.read(string(raw))
	if len(found) > 0 {
		e := &InputsError{text: strings.ReplaceAll(strings.TrimPrefix(mistakes(found), "- "), "\n- ", "; ")}
		for _, m := range found {
			if m.Missing != "" && len(m.At) == 0 {
				e.Missing = append(e.Missing, m.Missing)
			}
		}
		return nil, e
	}
	return data, nil
}

// read returns the object that satisfies the schema, or what is wrong.
func (s *Schema) read(raw string) (json.RawMessage, []schema.Mistake) {
	found := s.schema.Check(json.RawMessage(raw))
	if len(found) == 0 {
		return json.RawMessage(raw), nil
	}
	if mended := s.coerce(raw); mended != nil && len(s.schema.Check(mended)) == 0 {
		return mended, nil
	}
	return nil, found
}

// CheckOutput validates a final answer against the schema. It returns the
// errors, in words for the model, or "". A code fence around the JSON is
// ignored: models add one despite their instructions.
func (s *Schema) CheckOutput(text string) string {
	text = Unfenced(text)
	if !json.Valid([]byte(text)) {
		return "the answer is no JSON"
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := uniqueValue(dec, maxDepth-maxOutputDepth); err != nil {
		return err.Error()
	}
	return mistakes(s.schema.Check(json.RawMessage(text)))
}

// Unfenced returns the JSON of a final answer without the code fence around it:
// readers of a run's output do not expect one.
func Unfenced(text string) string {
	text = strings.TrimSpace(text)
	body, fenced := strings.CutPrefix(text, "```")
	if !fenced {
		return text
	}
	if len(body) >= 4 && strings.EqualFold(body[:4], "json") {
		body = body[4:]
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
}

func badJSON(format string, args ...any) error {
	return &message.CallError{Code: message.CodeBadJSON, Text: "the arguments are no valid JSON object: " + fmt.Sprintf(format, args...) + ". Nothing was run; write the whole call again."}
}

// strictObject refuses what encoding/json would ignore: text after the object,
// and a duplicate key, for which two readers may see two values.
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

// halfCharacter finds \u escapes that are half of a surrogate pair. Parsers
// differ about them, so that other arguments could be executed than were
// judged.
func halfCharacter(raw string) bool {
	unit := func(i int) rune {
		if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(raw[i+2:i+6], 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		switch r := unit(i); {
		case !utf16.IsSurrogate(r):
			i++ // also a backslash that is escaped itself
		case utf16.DecodeRune(r, unit(i+6)) == utf8.RuneError:
			return true
		default:
			i += 11
		}
	}
	return false
}

func position(err error, dec *json.Decoder) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("they end in the middle (byte %d)", dec.InputOffset())
	}
	return fmt.Sprintf("%v (byte %d)", err, dec.InputOffset())
}

// maxDepth bounds how deep arguments may nest, maxOutputDepth how deep a final
// answer may.
const (
	maxDepth       = 64
	maxOutputDepth = 1000
)

// uniqueKeys reads the rest of an object whose brace has been read.
func uniqueKeys(dec *json.Decoder, depth int) error {
	if depth > maxDepth {
		return errors.New("nested deeper than it may be")
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
			return errors.New("nested deeper than it may be")
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

// coerce reads "5" as 5 where the schema of the property allows only a number.
// There is only one possible reading. It returns nil when there is nothing to
// read.
func (s *Schema) coerce(raw string) json.RawMessage {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber() // the other members keep their digits
	var object map[string]any
	if dec.Decode(&object) != nil {
		return nil
	}
	changed := false
	for name, value := range object {
		text, ok := value.(string)
		if !ok {
			continue
		}
		switch s.schema.Type(name) {
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
	if !changed {
		return nil
	}
	b, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	return b
}

// explain describes what is wrong with arguments and what the tool takes.
func (s *Schema) explain(found []schema.Mistake) string {
	names := s.schema.Properties()
	for i, m := range found {
		if near := reason.Nearest(m.Unknown, names); m.Unknown != "" && near != "" && len(m.At) == 1 {
			found[i].Message += fmt.Sprintf(" (did you mean %q?)", near)
		}
	}
	text := "the arguments do not satisfy the tool's schema:\n" + mistakes(found)
	if len(names) > 0 {
		text += "\nThe tool takes: " + strings.Join(names, ", ") + "."
	}
	return text
}

// mistakes lists what is wrong, one line each.
func mistakes(found []schema.Mistake) string {
	lines := make([]string, len(found))
	for i, m := range found {
		lines[i] = "- " + m.Pointer() + ": " + m.Message
	}
	return strings.Join(lines, "\n")
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
