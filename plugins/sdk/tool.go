package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

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
	declared    json.RawMessage // the schema of the option Schema
	arguments   *arguments
	fn          func(ctx context.Context, call *Call, args json.RawMessage) (*Result, error)
	recall      func(past Past)
}

// arguments are what a tool takes. Both are made when they are first needed: a program
// of a dozen tools would otherwise spend half of its start on schemas that no call needs.
type arguments struct {
	// schema checks the arguments of a call.
	schema func() (*jsonschema.Resolved, error)
	// text describes them to a model.
	text func() (json.RawMessage, error)
}

// Option changes how New makes a tool.
type Option func(*Tool)

// Schema replaces the schema made from the type of the arguments: JSON Schema
// 2020-12 whose type is object.
func Schema(schema json.RawMessage) Option {
	return func(t *Tool) { t.declared = schema }
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
	t.arguments = newArguments(name, t.declared, func() (*jsonschema.Schema, error) { return jsonschema.For[In](nil) })
	return t
}

// newArguments are those that the schema declared describes or, if there is none, the
// schema that ofType makes.
func newArguments(name string, declared json.RawMessage, ofType func() (*jsonschema.Schema, error)) *arguments {
	schema := sync.OnceValues(func() (*jsonschema.Schema, error) {
		s, err := &jsonschema.Schema{}, error(nil)
		if declared != nil {
			err = json.Unmarshal(declared, s)
		} else {
			s, err = ofType()
		}
		if err != nil {
			return nil, fmt.Errorf("schema of the arguments: %w", err)
		}
		return s, nil
	})
	return &arguments{
		schema: sync.OnceValues(func() (*jsonschema.Resolved, error) {
			s, err := schema()
			if err != nil {
				return nil, err
			}
			return resolve(name, s)
		}),
		text: sync.OnceValues(func() (json.RawMessage, error) {
			if declared != nil {
				return declared, nil
			}
			s, err := schema()
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(s)
			if err != nil {
				return nil, fmt.Errorf("schema of the arguments: %w", err)
			}
			return text, nil
		}),
	}
}

// Name returns the tool's name.
func (t Tool) Name() string { return t.name }

// Description returns the description of the tool that the model reads.
func (t Tool) Description() string { return t.description }

// Parameters returns the JSON Schema of the arguments.
func (t Tool) Parameters() json.RawMessage {
	text, _ := t.arguments.text() // a mistake is reported by Serve and Describe
	return text
}

// resolve refuses what could not be offered to a model and returns the compiled schema.
func resolve(name string, s *jsonschema.Schema) (*jsonschema.Resolved, error) {
	if !callable(name) {
		return nil, fmt.Errorf("the name is not one of [A-Za-z0-9_-]{1,64}")
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("schema of the arguments: its type is %q, not \"object\"", s.Type)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("schema of the arguments: %w", err)
	}
	return r, nil
}

// check returns the mistake for which a tool cannot be served.
func (t *Tool) check() error {
	_, err := t.arguments.schema()
	if err == nil {
		_, err = t.arguments.text()
	}
	if err != nil {
		return fmt.Errorf("tool %q: %w", t.name, err)
	}
	return nil
}

// Run calls the tool within this process, as a test of the tool would. It never
// panics and never returns nil: whatever the function does becomes a result. A
// non-nil error is one that Errorf did not make; over the wire it ends the run.
func (t Tool) Run(ctx context.Context, call *Call, args json.RawMessage) (*Result, error) {
	if call == nil {
		call = &Call{}
	}
	return t.run(ctx, call, args)
}

func (t *Tool) run(ctx context.Context, call *Call, args json.RawMessage) (*Result, error) {
	schema, err := t.arguments.schema()
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", t.name, err)
	}
	if err := t.validate(schema, args); err != nil {
		return settle(ctx, nil, &argError{err})
	}
	return t.guard(ctx, call, args)
}

// validate holds the arguments against the schema. The caller did so too; a
// plugin cannot know which caller it has.
func (t *Tool) validate(schema *jsonschema.Resolved, args json.RawMessage) error {
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return fmt.Errorf("arguments of %s: %w", t.name, err)
	}
	if err := schema.Validate(v); err != nil {
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
