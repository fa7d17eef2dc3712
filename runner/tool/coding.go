package tool

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// CodingTask is the work of a call for a coding agent of others.
type CodingTask struct {
	// Program is the one that the tool declares, with its defaults.
	Program v1alpha1.CodingProgram
	Prompt  string
	Mode    v1alpha1.CodingMode
	// Path is the folder of the run's files that it gets, "." for all of them; Paths, below
	// it, are what the work is about.
	Path  string
	Paths []string
	// Model is the name of the Model that it asks; "" is that of the program.
	Model   string
	Timeout time.Duration
	Session string
	Args    []string
}

// CodingEnd is how the program of a call has ended.
type CodingEnd struct {
	message.Coding
	// Text is its answer; Why and Warning are those of coder.Ended.
	Text, Why, Warning string
	Exit               coder.Exit
	Stdout, Stderr     coder.Printed
	Took               time.Duration
	// Workspace is the name of the copy; Files are what was changed in it, and Added and
	// Removed the lines.
	Workspace      string
	Files          []CodedFile
	Added, Removed int
}

// CodedFile is a changed file; its hashes are "" where there was none.
type CodedFile struct {
	Path   string `json:"path"`
	Status string `json:"status"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Coders runs the program of a call to its end. A *message.CallError is a refusal that the
// model reads; any other error ends the run. It is called for one call at a time.
type Coders func(ctx context.Context, d *Definition, call message.ToolCall, t CodingTask, progress func(string)) (*CodingEnd, error)

// codes and codesOpencode answer the calls for coding agents of others.
func codes() HostTool         { return HostTool{Tool: builtin.CodingAgent, Answer: code} }
func codesOpencode() HostTool { return HostTool{Tool: builtin.OpencodeRun, Answer: code} }

// code runs a program to its end.
func code(ctx context.Context, h Host, call message.ToolCall) (*message.ToolResult, error) {
	var a codingArgs
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return nil, err
	}
	t, err := a.task(h.Tool)
	if err != nil {
		return h.Result(Reply{Output: err.Error(), Failed: true, Code: message.CodeTool})
	}
	if h.Coders == nil {
		return h.Result(Reply{Output: "no coding agent can be run here", Failed: true, Code: message.CodeTool})
	}
	end, err := h.Coders(ctx, h.Tool, call, t, h.Progress)
	if refused, ok := errors.AsType[*message.CallError](err); ok {
		return h.Result(Reply{Output: refused.Text, Failed: true, Code: refused.Code})
	}
	if err != nil {
		return nil, err
	}
	reply, err := codedReply(h.Tool, call, h.Run, end)
	if err != nil {
		return nil, err
	}
	result, err := h.Result(reply)
	if err != nil {
		return nil, err
	}
	result.Coding = &end.Coding
	return result, nil
}
