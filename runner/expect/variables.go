package expect

import (
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/expr"
)

func field(name string, t expr.Type) expr.Field { return expr.Field{Name: name, Type: t} }

func optional(name string, t expr.Type) expr.Field {
	return expr.Field{Name: name, Type: t, Optional: true}
}

// words is a text that is one of a closed list, or absent: "".
func words[T ~string](all ...T) expr.Type {
	list := []string{""}
	for _, w := range all {
		list = append(list, string(w))
	}
	return expr.Enum(list...)
}

// variables are what expectations read. Package agenttest makes their values.
func (s *Set) variables(tools []string, whole bool) []expr.Var {
	tool := expr.String
	if tools != nil {
		tool = words(slices.Sorted(slices.Values(tools))...)
	}
	phase, ended := words(phases...), reasons()
	child := expr.NewObject("child", field("agent", expr.String), field("run", expr.String), field("phase", phase), field("reason", ended))
	command := func(of string) expr.Type {
		return expr.NewObject("command of a "+of,
			field("name", expr.String), field("argv", expr.List(expr.String)), field("words", expr.List(expr.String)), field("decisive", expr.Bool))
	}
	call := func(name string, tool expr.Type) expr.Type {
		return expr.NewObject(name,
			field("id", expr.String), field("tool", tool), field("args", expr.Dyn),
			field("decision", words(message.Allow, message.Ask, message.Deny, message.Redact)), field("rule", expr.String),
			field("approval", words(message.Approved, message.Rejected, message.Expired, message.Unanswered)),
			field("state", words(message.StatePending, message.StateRunning, message.StateCompleted, message.StateError)),
			field("error", words(codes...)), optional("exitCode", expr.Int), field("output", expr.String), field("durationMs", expr.Int),
			optional("child", child), field("commands", expr.List(command(name))))
	}
	decision := func(name string, tool expr.Type) expr.Type {
		return expr.NewObject(name,
			field("call", expr.String), field("tool", tool), field("action", words(message.Allow, message.Ask, message.Deny, message.Redact)),
			field("rule", expr.String), field("message", expr.String), field("risk", words("R0", "R1", "R2", "R3")), field("source", expr.String))
	}
	result := expr.NewObject("result",
		field("agent", expr.String), field("phase", phase), field("reason", ended), field("exitCode", expr.Int),
		field("message", expr.String), field("output", expr.String), optional("structured", s.structured),
		field("steps", expr.Int), optional("cost", expr.Double), field("durationMs", expr.Int),
		field("tokens", expr.NewObject("tokens",
			field("input", expr.Int), field("output", expr.Int), field("reasoning", expr.Int), field("cacheRead", expr.Int),
			field("cacheWrite", expr.Int), field("total", expr.Int))),
		field("calls", expr.NewObject("counts", field("done", expr.Int), field("refused", expr.Int), field("asked", expr.Int), field("repaired", expr.Int))),
		field("changesError", expr.String), field("warnings", expr.List(expr.String)))
	file := expr.NewObject("file",
		field("change", words(changes...)), field("type", words(fileTypes...)),
		field("size", expr.Int), optional("content", expr.String), optional("target", expr.String))
	of := expr.NewObject("event",
		field("seq", expr.Int), field("type", words(eventTypes()...)), field("time", expr.String), field("call", expr.String),
		field("message", expr.String), field("data", expr.Dyn))
	below := expr.NewObject("run below",
		field("agent", expr.String), field("run", expr.String), field("phase", phase), field("reason", ended), field("output", expr.String), field("steps", expr.Int),
		field("calls", expr.List(call("call of a run below", expr.String))), field("decisions", expr.List(decision("decision of a run below", expr.String))))
	vars := []expr.Var{
		{Name: "result", Type: result},
		{Name: "calls", Type: expr.List(call("call", tool))},
		{Name: "decisions", Type: expr.List(decision("decision", tool))},
		{Name: "files", Type: expr.Map(file)},
		{Name: "prompt", Type: expr.String},
		{Name: "inputs", Type: s.inputs},
	}
	if whole {
		vars = append(vars, expr.Var{Name: "events", Type: expr.List(of)}, expr.Var{Name: "children", Type: expr.List(below)})
	}
	return vars
}

// The words of packages that admission does not import; a test of package agenttest
// compares them.
var (
	phases    = []string{"Succeeded", "Failed", "Cancelled", "Suspended"}
	changes   = []string{"added", "modified", "deleted"}
	fileTypes = []string{"file", "dir", "link"}
)

// codes are the error codes of calls.
var codes = []message.ErrorCode{
	message.CodeUnknownTool, message.CodeBadJSON, message.CodeSchema, message.CodeDenied, message.CodeRejected, message.CodeLoop, message.CodeTimeout,
	message.CodeCancelled, message.CodeUnknown, message.CodeIsolation, message.CodeTool, message.CodeOutputLimit,
}

// reasons are the words with which a run ends.
func reasons() expr.Type {
	var all []reason.Reason
	for _, info := range reason.All() {
		if info.ExitCode >= 0 {
			all = append(all, info.Reason)
		}
	}
	return words(all...)
}

// leftOut are the events that expectations do not see: pieces of what a later event holds
// as a whole. A run has more of them than of all others.
var leftOut = []event.Type{event.TypeTextDelta, event.TypeReasoningDelta, event.TypeToolInputDelta, event.TypeToolProgress}

func eventTypes() (all []event.Type) {
	for _, p := range event.Payloads() {
		if !slices.Contains(leftOut, p.Type()) {
			all = append(all, p.Type())
		}
	}
	return all
}

// Keeps reports whether expectations see events of a type.
func Keeps(t event.Type) bool { return !slices.Contains(leftOut, t) }
