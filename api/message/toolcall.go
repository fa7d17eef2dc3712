package message

import (
	"encoding/json"
	"fmt"
	"slices"
)

// ToolState is the state of a tool call. A call that waits for an approval is
// pending; one that was denied, cancelled or timed out is error with that code.
type ToolState string

// The states of a tool call.
const (
	StatePending   ToolState = "pending"
	StateRunning   ToolState = "running"
	StateCompleted ToolState = "completed"
	StateError     ToolState = "error"
)

// moves is the table of legal moves; every other one is refused.
var moves = map[ToolState][]ToolState{
	StatePending: {StateRunning, StateError},
	StateRunning: {StateCompleted, StateError},
}

// CanMove reports whether a call may go from one state to another.
func CanMove(from, to ToolState) bool {
	return slices.Contains(moves[from], to)
}

// ErrorCode says why a call failed. The list is closed.
type ErrorCode string

// The error codes of a tool call.
const (
	CodeUnknownTool ErrorCode = "unknown_tool"
	CodeBadJSON     ErrorCode = "bad_json"
	CodeSchema      ErrorCode = "schema"
	CodeDenied      ErrorCode = "denied"
	CodeRejected    ErrorCode = "rejected"
	CodeLoop        ErrorCode = "loop"
	CodeTimeout     ErrorCode = "timeout"
	CodeCancelled   ErrorCode = "cancelled"
	CodeUnknown     ErrorCode = "unknown"
	CodeIsolation   ErrorCode = "isolation"
	CodeTool        ErrorCode = "tool"
	CodeOutputLimit ErrorCode = "output_limit"
)

// ToolPart is a tool call and its result.
type ToolPart struct {
	// CallID as the model wrote it, made unique within the run.
	CallID string `json:"callID"`
	// Tool is the call name, after repair.
	Tool string `json:"tool"`
	// Raw is what the model wrote as arguments, whatever it was.
	Raw string `json:"raw"`
	// Expands is the text of the prompt whose author asks for the call; "" for a call of a model.
	Expands string    `json:"expands,omitempty"`
	State   ToolState `json:"state"`
	// Input is Raw as a checked JSON object; nil when it is none.
	Input    json.RawMessage `json:"input,omitempty"`
	Decision *Decision       `json:"decision,omitempty"`
	Approval ApprovalState   `json:"approval,omitempty"`
	// Progress is the newest output of a call that still runs, at most 4 KB.
	Progress string `json:"progress,omitempty"`
	// Title and Metadata are what a call that still runs says of itself: a short line, and
	// a JSON object. Those of a call that has ended are in its result.
	Title    string          `json:"title,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Result   *ToolResult     `json:"result,omitempty"`
	// Attempt counts how often the tool was asked; more than 1 only after a crash.
	Attempt int `json:"attempt,omitempty"`
	// Start and End of the run of the tool, in milliseconds since 1970.
	Start int64 `json:"start,omitempty"`
	End   int64 `json:"end,omitempty"`
	// Compacted is when the output was taken out of the conversation, in
	// milliseconds since 1970; the journal keeps it.
	Compacted int64 `json:"compacted,omitempty"`
	// Workspace identifies the contents of the files before the call, where it
	// was looked at.
	Workspace string `json:"workspace,omitempty"`
	// Repaired says that the model wrote the name of the tool in another way.
	Repaired bool `json:"repaired,omitempty"`
}

// CallCounts counts tool calls by what became of them. A call may be counted more
// than once: one that was asked about and then ran is asked and done.
type CallCounts struct {
	// Done calls ran to a result, whether it was a failure or not. A call that an
	// interrupted run left open, and that may have happened, is not one of them.
	Done int `json:"done"`
	// Refused calls did not run because a rule or a person refused them, or
	// because no one answered the question about them.
	Refused int `json:"refused"`
	// Asked calls were those that the policy put to a person, or to what answers for
	// one.
	Asked int `json:"asked"`
	// Repaired calls had the name of the tool written in another way.
	Repaired int `json:"repaired"`
}

// Add returns the sum.
func (c CallCounts) Add(o CallCounts) CallCounts {
	return CallCounts{c.Done + o.Done, c.Refused + o.Refused, c.Asked + o.Asked, c.Repaired + o.Repaired}
}

// Refused reports whether the call was judged and did not run because of that. A
// call that ran and failed was not refused, whatever its code.
func (t *ToolPart) Refused() bool {
	return t.State == StateError && t.Start == 0 && t.Decision != nil && t.Result != nil &&
		(t.Result.Code == CodeDenied || t.Result.Code == CodeRejected)
}

// Counts counts the call.
func (t *ToolPart) Counts() (c CallCounts) {
	if t.Start != 0 && t.Result != nil && t.Result.Code != CodeUnknown {
		c.Done = 1
	}
	if t.Refused() {
		c.Refused = 1
	}
	if t.Decision != nil && t.Decision.Action == Ask {
		c.Asked = 1
	}
	if t.Repaired {
		c.Repaired = 1
	}
	return c
}

// Move changes the state, or says that the table forbids it.
func (t *ToolPart) Move(to ToolState) error {
	if !CanMove(t.State, to) {
		return fmt.Errorf("tool call %s: no move from %s to %s", t.CallID, t.State, to)
	}
	t.State = to
	return nil
}

// ToolCall is a call on its way to a decision and a tool.
type ToolCall struct {
	// ID is the call's id within the run.
	ID string `json:"id"`
	// Tool is the call name of a known tool.
	Tool string `json:"tool"`
	// Args are checked arguments: a JSON object that satisfies the tool's schema.
	Args json.RawMessage `json:"args"`
	// Message of the model that asked for the call.
	Message string `json:"message,omitempty"`
	// Step is the model call that asked, counted from 1.
	Step int `json:"step"`
	// Repeats counts the equal calls directly before this one.
	Repeats int `json:"repeats,omitempty"`
	// Again is true for the second decision about a call, right
	// before it runs: what it names may have changed since.
	Again bool `json:"again,omitempty"`
	// Outside are the paths outside the workspace that the decision on this call
	// lets it use. It is set for a call that runs.
	Outside []OutsidePath `json:"outside,omitempty"`
	// Binding is that of the decision on this call. It is set for a call that runs.
	Binding *Binding `json:"binding,omitempty"`
}

// OutsidePath is a file or folder outside the workspace that a call may use,
// because a policy or a person has allowed it.
type OutsidePath struct {
	// Name is the path as the call names it: absolute and without dots, or
	// beginning with "~".
	Name string `json:"name"`
	// Real is the absolute path where it was when the call was judged, with all
	// links resolved.
	Real string `json:"real"`
	// Writable reports whether the call may change it; otherwise it is read-only.
	Writable bool `json:"writable,omitempty"`
}

// ToolResult is what a call came to.
type ToolResult struct {
	// Text is what the model reads: output, then our footer.
	Text string `json:"text"`
	// Output is what the tool wrote, redacted and cut, without our footer.
	Output string `json:"output,omitempty"`
	// ExitCode of the program behind the call, where there is one.
	ExitCode *int `json:"exitCode,omitempty"`
	// Code says why the call failed; "" means it did not.
	Code ErrorCode `json:"code,omitempty"`
	// Blob is the id of the full text when Text had to be cut.
	Blob string `json:"blob,omitempty"`
	// Title is a short line for people, for example the path that was read.
	Title string `json:"title,omitempty"`
	// Metadata is for people and programs, never for the model.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Duration of the tool itself, in microseconds.
	DurationMicros int64 `json:"durationMicros,omitempty"`
	// Writes says that the call may have changed files.
	Writes bool `json:"writes,omitempty"`
	// Attachments are the images and documents that the call returned besides its
	// text. Each is a blob of the run; a model that cannot be shown one reads its name.
	Attachments []File `json:"attachments,omitempty"`
	// Origin of the text and the attachments; absent in runs of earlier versions.
	Origin *Origin `json:"origin,omitempty"`
	// Todos is the todo list of the run from this call on; nil leaves it as it is.
	Todos Todos `json:"todos,omitzero"`
	// Publication is what the call has prepared for publication; nil for other calls.
	Publication *Publication `json:"publication,omitempty"`
	// Parts are data that the tool has sent for other programs. No model reads them.
	Parts []DataPart `json:"parts,omitempty"`
	// Diagnostics are what checks of the files say that the call has changed. The text and
	// the output contain them, too.
	Diagnostics []Check `json:"diagnostics,omitempty"`
	// Record is what the call did, as its program has observed it; nil where that was not
	// asked for, or could not be observed.
	Record *Record `json:"record,omitempty"`
	// Child is the run that the call has started; nil for other calls.
	Child *ChildRun `json:"child,omitempty"`
	// Coding is what a coding agent of others has done in the call; nil for other calls.
	Coding *Coding `json:"coding,omitempty"`
}

// DataPart is data of a type that only those know who agree on it. It survives every way
// that a result takes: readers that do not know the type hand it on.
type DataPart struct {
	// Type is "<tool>/<name>".
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// Failed reports whether the result is an error result.
func (r *ToolResult) Failed() bool { return r.Code != "" }

// ToolSpec describes a tool to a model.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Checked is a call that may be judged.
type Checked struct {
	Tool string
	Args json.RawMessage
	// Signature identifies equal calls: a hash over the name and the canonical
	// arguments without free-text fields.
	Signature string
	// Exclusive calls run alone.
	Exclusive bool
	// Repeatable calls may run again after a crash: Idempotent or Keyed ones.
	Repeatable bool
	// Repaired says that the name was not written as the tool is called.
	Repaired bool
	// Coerced says that a value was read in the one way the schema allows, "5" as
	// 5; the model is told.
	Coerced bool
}

// CallError reports what is wrong with a call, in words that help the model correct it.
type CallError struct {
	Code ErrorCode
	Text string
}

func (e *CallError) Error() string { return string(e.Code) + ": " + e.Text }
