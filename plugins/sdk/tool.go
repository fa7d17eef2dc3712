package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// callable reports whether a model can be offered a tool of this name: 1 to 64 letters,
// digits, _ and -.
func callable(name string) bool {
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	return len(name) >= 1 && len(name) <= 64 && !strings.ContainsFunc(name, strange)
}

// Tool is a function with a name, a description and a schema. New makes one.
type Tool struct {
	name        string
	description string
	parameters  json.RawMessage
	schema      *jsonschema.Resolved
	fn          func(ctx context.Context, call *Call, args json.RawMessage) (*Result, error)
	recall      func(past Past)
	err         error
}

// Option changes how New makes a tool.
type Option func(*Tool)

// Schema replaces the schema made from the type of the arguments: JSON Schema
// 2020-12 whose type is object.
func Schema(schema json.RawMessage) Option {
	return func(t *Tool) { t.parameters = schema }
}

// Past is what a tool answered earlier in a run, in a process before this one.
type Past struct {
	// Run and Workspace as in Call.
	Run, Workspace string
	// Metadata of the result, as JSON. Secrets in it have been replaced.
	Metadata json.RawMessage
}

// OnRecall is for a tool that remembers something from one call to the next. When its
// program is started in the middle of a run, after a crash of either side, fn receives
// every completed answer of the tool, in order and before the first call; the answers of
// all tools of the program come in the order in which they were given. Only what the
// metadata holds can be remembered.
func OnRecall(fn func(past Past)) Option {
	return func(t *Tool) { t.recall = fn }
}

// New makes a tool of a function. The schema of the arguments comes from the
// struct tags of In: `json:"path"` names a field, `jsonschema:"..."` describes
// it. A field without omitempty is required; unknown fields are refused.
//
// Mistakes in a tool are reported by Serve and Describe, so that a list of tools
// can be written as one expression.
func New[In any](name, description string, fn func(ctx context.Context, call *Call, in In) (*Result, error), opts ...Option) Tool {
	t := Tool{name: name, description: description}
	t.fn = func(ctx context.Context, call *Call, args json.RawMessage) (*Result, error) {
		var in In
		if err := decode(args, &in); err != nil {
			return nil, err
		}
		return fn(ctx, call, in)
	}
	for _, o := range opts {
		o(&t)
	}
	s, err := &jsonschema.Schema{}, error(nil)
	if t.parameters != nil {
		err = json.Unmarshal(t.parameters, s)
	} else if s, err = jsonschema.For[In](nil); err == nil {
		t.parameters, err = json.Marshal(s)
	}
	if err != nil {
		t.err = fmt.Errorf("schema of the arguments: %w", err)
		return t
	}
	t.err = t.check(s)
	return t
}

// Name returns the tool's name.
func (t Tool) Name() string { return t.name }

// Description returns the description of the tool that the model reads.
func (t Tool) Description() string { return t.description }

// Parameters returns the JSON Schema of the arguments.
func (t Tool) Parameters() json.RawMessage { return t.parameters }

// check refuses what could not be offered to a model and keeps the compiled schema.
func (t *Tool) check(s *jsonschema.Schema) error {
	if !callable(t.name) {
		return fmt.Errorf("the name is not one of [A-Za-z0-9_-]{1,64}")
	}
	if s.Type != "object" {
		return fmt.Errorf("schema of the arguments: its type is %q, not \"object\"", s.Type)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return fmt.Errorf("schema of the arguments: %w", err)
	}
	t.schema = r
	return nil
}

// Run calls the tool within this process, as a test of the tool would. It never
// panics and never returns nil: whatever the function does becomes a result. A
// non-nil error is one that Errorf did not make; over the wire it ends the run.
func (t Tool) Run(ctx context.Context, call *Call, args json.RawMessage) (*Result, error) {
	if t.err != nil {
		return nil, fmt.Errorf("tool %q: %w", t.name, t.err)
	}
	if call == nil {
		call = &Call{}
	}
	return t.run(ctx, call, args)
}

func (t *Tool) run(ctx context.Context, call *Call, args json.RawMessage) (*Result, error) {
	if err := t.validate(args); err != nil {
		return settle(ctx, nil, &argError{err})
	}
	return t.guard(ctx, call, args)
}

// validate holds the arguments against the schema. The caller did so too; a
// plugin cannot know which caller it has.
func (t *Tool) validate(args json.RawMessage) error {
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return fmt.Errorf("arguments of %s: %w", t.name, err)
	}
	if err := t.schema.Validate(v); err != nil {
		return fmt.Errorf("arguments of %s: %w", t.name, err)
	}
	return nil
}

// decode reads exactly one JSON value with known fields only.
func decode(args json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &argError{fmt.Errorf("arguments: %w", err)}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &argError{errors.New("arguments: more than one JSON value")}
	}
	return nil
}

// argError is a mistake in the arguments.
type argError struct{ error }

func (e *argError) Unwrap() error { return e.error }
