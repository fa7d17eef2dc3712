package tool

import (
	"context"
	"fmt"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// HostTool answers calls of a shipped tool in the process of the runner: no
// program is started for them. Its calls are checked, judged, journaled,
// resumed and shown as those of any other tool.
type HostTool struct {
	// Tool is the shipped tool whose calls it answers. A tool of which all calls
	// are answered here has Host set in the table of runner/tool/builtin; the
	// table also has its description for the model, its risk and its effects.
	Tool string
	// Takes reports whether it answers a call; any other call goes to the
	// program of the tool. Nil: it answers all calls.
	Takes func(call message.ToolCall) bool
	// Answer runs a call to its end. An error ends the run: a call that fails has a
	// result with a code. It is called by several goroutines.
	Answer func(ctx context.Context, h Host, call message.ToolCall) (*message.ToolResult, error)
}

// Host is what a host tool can use of the run.
type Host struct {
	Blobs Blobs
	// Window is how much the model is shown of an output.
	Window Window
	// Result is the result of a host tool from its text: without secrets, and
	// cut as the output of a program.
	Result func(Reply) (*message.ToolResult, error)
}

// HostTools is the one list of host tools.
func HostTools() []HostTool {
	return []HostTool{blobReads()}
}

// answer answers a call that needs no program; false leaves it to the program of its tool.
func (r *Registry) answer(ctx context.Context, d *Definition, call message.ToolCall) (*message.ToolResult, bool, error) {
	if d.Shipped == "" {
		return nil, false, nil
	}
	for i := range r.HostTools {
		h := &r.HostTools[i]
		if h.Tool != d.Shipped || h.Takes != nil && !h.Takes(call) {
			continue
		}
		began := r.Now()
		result, err := h.Answer(ctx, Host{
			Blobs: r.Blobs, Window: d.window(),
			Result: func(reply Reply) (*message.ToolResult, error) { return r.result(d, reply, r.Now().Sub(began)) },
		}, call)
		if err != nil {
			err = fmt.Errorf("tool %q: %w", d.Name, err)
		}
		return result, true, err
	}
	if d.Host {
		return nil, true, reason.New(reason.Internal, "tool %q: no host tool answers it", d.Name)
	}
	return nil, false, nil
}
