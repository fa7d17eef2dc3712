package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Codes a result may carry when it is an error. Others are allowed; agentctl
// reads an unknown one as CodeTool.
const (
	// CodeTool: the tool could not do what was asked.
	CodeTool = "tool"
	// CodeTimeout: the call timed out; the text is the output so far.
	CodeTimeout = "timeout"
	// CodeCancelled: the call was cancelled.
	CodeCancelled = "cancelled"
	// CodeSchema: the arguments do not match the schema.
	CodeSchema = "schema"
	// CodeUnknownTool: the program has no tool of that name.
	CodeUnknownTool = "unknown_tool"
)

// Result is what a call came to.
type Result struct {
	// Text is what the model reads, after anything written to Call.Output.
	Text string
	// ExitCode of the program behind the call, where there is one.
	ExitCode *int
	// Signal that ended that program, for example "killed".
	Signal string
	// Title is a short line for people, for example the path that was read.
	Title string
	// Metadata is for people and programs, never for the model. It is encoded
	// as JSON; above 1 MiB it is dropped.
	Metadata any
	// Writes is true if the call may have changed files.
	Writes bool
	// IsError is true if the call failed in a way the model should read.
	IsError bool
	// Code is the kind of failure; "" with IsError is CodeTool.
	Code string
}

// Errorf returns an error for the model to read: the call becomes an error result with
// this text and the run continues. Any other error of a tool means that the tool itself
// does not work, and ends the run.
func Errorf(format string, args ...any) error {
	return &toolError{fmt.Errorf(format, args...)}
}

type toolError struct{ error }

func (e *toolError) Unwrap() error { return e.error }

// guard runs the function and turns panics and readable errors into results.
func (t *Tool) guard(ctx context.Context, call *Call, args json.RawMessage) (res *Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("tool panicked", "tool", t.name, "call", call.ID, "panic", p, "stack", string(debug.Stack()))
			res, err = &Result{Text: fmt.Sprintf("the tool panicked: %v", p), IsError: true, Code: CodeTool}, nil
		}
	}()
	res, err = t.fn(ctx, call, args)
	return settle(ctx, res, err)
}

// settle makes one outcome of a function's two results.
func settle(ctx context.Context, res *Result, err error) (*Result, error) {
	if err == nil {
		if res == nil {
			res = &Result{}
		}
		if res.IsError && res.Code == "" {
			res.Code = CodeTool
		}
		if res.Code != "" {
			res.IsError = true
		}
		return res, nil
	}
	if res == nil {
		res = &Result{}
	}
	res.IsError = true
	var bad *argError
	var forModel *toolError
	switch {
	case errors.As(err, &bad):
		res.Code = CodeSchema
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		res.Code = CodeTimeout
	case ctx.Err() != nil:
		res.Code = CodeCancelled
	case errors.As(err, &forModel):
		if res.Code == "" {
			res.Code = CodeTool
		}
	default:
		return nil, err
	}
	res.Text = join(res.Text, err.Error())
	return res, nil
}

// join puts b on a line of its own after a.
func join(a, b string) string {
	switch {
	case a == "":
		return b
	case a[len(a)-1] == '\n':
		return a + b
	}
	return a + "\n" + b
}
