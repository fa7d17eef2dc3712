package tool

import (
	"context"
	"fmt"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/tool/skill"
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
	// Todos is the todo list of the run, nil when there is none.
	Todos func() message.Todos
	// Ask puts a question of the call to a person and returns how it ended. It waits as
	// long as the agent declares. An error is one of the question, or of the end of ctx.
	Ask func(ctx context.Context, in message.Inquiry) (message.Reply, error)
	// Progress reports to people how far the call is.
	Progress func(text string)
	// Agent is what the tool starts, by its source; "" for all others.
	Agent string
	// Subagents starts agents; nil where none can be started.
	Subagents Subagents
	// Merge takes over what a subagent has changed in a copy; nil where nothing can be.
	Merge Merger
	// Tool is the tool of the call, and Run the run. Coders runs the program of a coding agent
	// of others; nil where none can be run.
	Tool   *Definition
	Run    string
	Coders Coders
	// Skills are those that the agent may load, and Tools the call names of all its tools.
	Skills []skill.Entry
	Tools  []string
	// Items are what the call may prepare for publication; Secret reports whether texts hold
	// a secret of the run.
	Items  Items
	Secret func(texts ...string) bool
	// Unreadable is that of Options.
	Unreadable func(ctx context.Context, call message.ToolCall, files []string) ([]string, error)
}

// HostTools is the one list of host tools.
func HostTools() []HostTool {
	return []HostTool{blobReads(), todoWrites(), todoReads(), questions(), tasks(), merges(), skills(), publications(), codes(), codesOpencode()}
}

func (r *Registry) todos() message.Todos {
	if r.Todos == nil {
		return nil
	}
	return r.Todos()
}

// asker asks for a call; where there is no person, it says so.
func (r *Registry) asker(call string) func(context.Context, message.Inquiry) (message.Reply, error) {
	return func(ctx context.Context, in message.Inquiry) (message.Reply, error) {
		if r.Inquire == nil {
			return message.Reply{State: message.ReplyUnanswered, Reason: "nobody can answer: no person is there"}, nil
		}
		return r.Inquire(ctx, call, in)
	}
}

// answer answers a call that needs no program; false leaves it to the program of its tool.
func (r *Registry) answer(ctx context.Context, d *Definition, call message.ToolCall, progress func(string)) (*message.ToolResult, bool, error) {
	name := d.Shipped
	if d.Agent != "" {
		name = taskTool
	}
	if name == "" {
		return nil, false, nil
	}
	for i := range r.HostTools {
		h := &r.HostTools[i]
		if h.Tool != name || h.Takes != nil && !h.Takes(call) {
			continue
		}
		began := r.Now()
		result, err := h.Answer(ctx, Host{
			Blobs: r.Blobs, Window: d.window(), Todos: r.todos, Ask: r.asker(call.ID), Progress: progress, Agent: d.Agent, Subagents: r.Subagents, Merge: r.Merge, Tool: d, Run: r.Options.Run, Coders: r.Coders,
			Skills: r.Skills, Tools: r.names, Items: r.Items, Secret: r.holdsSecret, Unreadable: r.Unreadable,
			Result: func(reply Reply) (*message.ToolResult, error) { return r.result(d, "", reply, r.Now().Sub(began)) },
		}, call)
		if err != nil && ctx.Err() != nil {
			return &message.ToolResult{Code: message.CodeCancelled, Text: "cancelled: " + whyStopped(ctx)}, true, nil //nolint:nilerr // the end of the call is its result
		}
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
