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
	// Attachments are images and documents for the model to look at, at most 8. A model
	// that cannot be shown one reads its name: Text should say what it is.
	Attachments []Attachment
	// Parts are data for other programs, which is kept with the result and which no model
	// reads: at most 16, together 256 KiB.
	Parts []Part
	// Variables are secrets that later calls of other tools are given, as the manifests
	// declare: at most 16. They are recorded nowhere; do not write them into Text, Progress
	// or a file either. An error supplies none.
	Variables []Variable
	// Record is what the call did, as far as the tool has observed it.
	Record *Record
}

// Part is data of a type that its readers know.
type Part struct {
	// Type is "<tool>/<name>", for example "deploy/target": the name by which the tool is
	// called, which its manifest gives, and one of the author's. Any other is refused.
	Type string
	// Data is encoded as JSON of at most 64 KiB.
	Data any
}

// Attachment is a file that a call returns: PNG, JPEG, GIF, WebP or PDF of at most
// 10 MiB, all together at most 20 MiB.
type Attachment struct {
	// Name without folders, such as shot.png.
	Name string
	// Type is the media type, such as image/png. agentctl looks at Data itself.
	Type string
	Data []byte
}

// attachedLimit keeps a result with its attachments below what a message may have.
const attachedLimit = 32 << 20

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
