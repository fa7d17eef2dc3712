// Package expect compiles and evaluates what has to be true of a run that has ended: CEL expressions over its result, its calls, its files and its events.
//
// The variables are typed, from what is known of the agent: its tools, its inputs and its
// answer. An expectation that names a field, a tool or a word that does not exist is a
// mistake of the manifest, and found before anything runs.
package expect

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/expr"
)

// Contract is what is known of the agent whose runs are looked at.
type Contract struct {
	// Tools are the call names that its calls can have; nil: not all are known.
	Tools []string
	// Inputs and Output are the JSON Schemas of its inputs and of its answer; nil where it
	// declares none.
	Inputs, Output json.RawMessage
	// Shells are the shipped tools that run commands, by the call names of the agent.
	Shells map[string]string
	// Evidence leaves out the variables that only tests read: events and children.
	Evidence bool
}

// Set compiles the expectations about the runs of one agent, each once. It may be used by
// many goroutines.
type Set struct {
	texts      *expr.Texts
	inputs     expr.Type
	structured expr.Type
	shells     map[string]string
}

// NewSet returns a set that has compiled nothing.
func NewSet(c Contract) *Set {
	s := &Set{inputs: typeOf("Inputs", c.Inputs, expr.Map(expr.Dyn)), structured: typeOf("Answer", c.Output, expr.Dyn), shells: c.Shells}
	s.texts = expr.NewTexts(func() (*expr.Env, error) { return expr.NewEnv(s.variables(c.Tools, !c.Evidence)...) })
	return s
}

// typeOf is the type that a schema describes. One that cannot be read is a mistake that is
// reported where it is written.
func typeOf(name string, schema json.RawMessage, otherwise expr.Type) expr.Type {
	if len(schema) == 0 {
		return otherwise
	}
	t, err := expr.FromSchema(name, schema)
	if err != nil {
		return otherwise
	}
	return t
}

// Inputs decodes the inputs of a run as expressions read them.
func (s *Set) Inputs(raw json.RawMessage) (any, error) { return s.inputs.Decode(raw) }

// Structured decodes an answer as expressions read it. The error is that of an answer which
// is not JSON.
func (s *Set) Structured(output string) (any, error) {
	return s.structured.Decode(json.RawMessage(output))
}

// Shell is the shipped tool that runs the commands of a tool; "" for one that runs none.
func (s *Set) Shell(tool string) string { return s.shells[tool] }

// Value decodes any other JSON as expressions read it.
func (s *Set) Value(raw json.RawMessage) (any, error) { return expr.Dyn.Decode(raw) }

// Text is a text as expressions take it.
func Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Expectation is an expression that has been compiled.
type Expectation struct{ program *expr.Program }

// Compile compiles an expression. Its errors are *expr.Error.
func (s *Set) Compile(expression string) (*Expectation, error) {
	p, err := s.texts.Bool(expression)
	if err != nil {
		return nil, err
	}
	return &Expectation{p}, nil
}

// Constant returns the value of an expectation that is the same whatever the run did.
func (e *Expectation) Constant() (value, constant bool) { return e.program.Constant() }

// JudgesEnd reports whether an expectation reads how the run ended.
func (e *Expectation) JudgesEnd() bool {
	for _, field := range []string{"phase", "reason", "exitCode"} {
		if e.program.Reads("result", field) {
			return true
		}
	}
	return false
}

// ReadsFiles and ReadsEvents report whether an expectation reads these variables, which
// take time to fill.
func (e *Expectation) ReadsFiles() bool { return e.program.Reads("files") }

// ReadsEvents is described with ReadsFiles.
func (e *Expectation) ReadsEvents() bool { return e.program.Reads("events") }

// Value is a part of an expression and the value that it had, as JSON, or "error: " and why.
// Those of lists of the run are summed up in words.
type Value struct {
	Expression string `json:"expression"`
	Value      string `json:"value"`
}

// Verdict is what came of an expectation.
type Verdict struct {
	Met bool
	// Err is why it could not be evaluated; it is not met then.
	Err error
	// Values of its parts, the whole first, where it is not met.
	Values []Value
}

// failed begins the value of a part that could not be evaluated.
const failed = "error: "

// errUnknown is the error of a value that depends on nothing that is known.
var errUnknown = errors.New("its value is unknown")

// Judge evaluates the expectation over the values of a run. The error of a context that has
// ended is its cause.
func (e *Expectation) Judge(ctx context.Context, values map[string]any) (Verdict, error) {
	in := expr.Input{Vars: values, Large: true}
	truth, err := e.program.EvalBool(ctx, in)
	if err == nil && truth == expr.Unknown {
		err = errUnknown
	}
	if ctx.Err() != nil {
		return Verdict{}, context.Cause(ctx)
	}
	v := Verdict{Met: err == nil && truth == expr.True, Err: err}
	if v.Met {
		return v, nil
	}
	steps, traced := e.program.Trace(ctx, in)
	if traced != nil && v.Err == nil {
		v.Err = traced
	}
	for _, s := range steps {
		if v.Err != nil && strings.HasPrefix(s.Value, failed) {
			continue // the error is said once
		}
		if _, listed := summaries[s.Expression]; !listed {
			v.Values = append(v.Values, Value(s))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(summaries)) {
		if text, ok := summary(name, values); ok && e.program.Reads(name) {
			v.Values = append(v.Values, Value{Expression: name, Value: text})
		}
	}
	return v, nil
}
