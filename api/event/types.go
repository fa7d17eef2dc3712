package event

import (
	"encoding/json"
	"reflect"

	"agentctl.dev/agentctl/api/message"
)

// Type names the kind of an event.
type Type string

// The types of events, in the order a run meets them.
const (
	TypeRunStarted        Type = "run.started"
	TypeRunResumed        Type = "run.resumed"
	TypeRunFinished       Type = "run.finished"
	TypeUserMessage       Type = "user.message"
	TypeMessageReceived   Type = "message.received"
	TypeStepStart         Type = "step.start"
	TypeStepFinish        Type = "step.finish"
	TypeModelRequest      Type = "model.request"
	TypeModelResponse     Type = "model.response"
	TypeModelRetry        Type = "model.retry"
	TypeTextStart         Type = "text.start"
	TypeTextDelta         Type = "text.delta"
	TypeTextEnd           Type = "text.end"
	TypeReasoningStart    Type = "reasoning.start"
	TypeReasoningDelta    Type = "reasoning.delta"
	TypeReasoningEnd      Type = "reasoning.end"
	TypeToolInputStart    Type = "tool.input-start"
	TypeToolInputDelta    Type = "tool.input-delta"
	TypeToolInputEnd      Type = "tool.input-end"
	TypePolicyDecision    Type = "policy.decision"
	TypeApprovalRequested Type = "approval.requested"
	TypeApprovalDecided   Type = "approval.decided"
	TypeToolCall          Type = "tool.call"
	TypeToolProgress      Type = "tool.progress"
	TypeQuestionAsked     Type = "question.asked"
	TypeQuestionAnswered  Type = "question.answered"
	TypeToolResult        Type = "tool.result"
	TypeToolError         Type = "tool.error"
	TypeContextPrune      Type = "context.prune"
	TypeContextCompaction Type = "context.compaction"
	TypeWorkspaceSnapshot Type = "workspace.snapshot"
	TypeWorkspacePatch    Type = "workspace.patch"
	TypeEgressConnection  Type = "egress.connection"
	TypeWarning           Type = "warning"
)

// RunStarted opens a run. It is durable before anything else happens.
type RunStarted struct {
	// Agent and Model by name.
	Agent string           `json:"agent"`
	Model message.ModelRef `json:"model"`
	// Prompt is the first user message, and Files are attached to it. Their content
	// is kept in blobs.
	Prompt string          `json:"prompt"`
	Files  []message.File  `json:"files,omitempty"`
	Inputs json.RawMessage `json:"inputs,omitempty"`
	// Workspace the run works on.
	Workspace Workspace `json:"workspace"`
	// Plan is the blob that holds the resolved manifests and the wishes of the
	// command line: all that a resume needs.
	Plan string `json:"plan,omitempty"`
	// Mode of the agent, and the call names of its tools.
	Mode  string   `json:"mode,omitempty"`
	Tools []string `json:"tools,omitempty"`
	// Isolation the host gives: None, Sandbox or Container.
	Isolation string `json:"isolation"`
	// ToolIsolation is the level of each tool that runs at another one, by call name.
	ToolIsolation map[string]string `json:"toolIsolation,omitempty"`
	// OuterIsolation is what AGENTCTL_OUTER_ISOLATION declared, or "".
	OuterIsolation string `json:"outerIsolation,omitempty"`
	// Version of agentctl.
	Version string `json:"version"`
	// User is who began the run: an account of the machine, or an identity of the
	// control plane. "" is not known.
	User string `json:"user,omitempty"`
}

// RunResumed records that another process continues a run that was interrupted
// or suspended. A request that was not answered is void and sent again.
type RunResumed struct {
	// Attempt counts the processes that have worked on the run; the first resume is 2.
	Attempt int `json:"attempt"`
	// Isolation, OuterIsolation and Version as in run.started, of this process.
	Isolation      string `json:"isolation"`
	OuterIsolation string `json:"outerIsolation,omitempty"`
	Version        string `json:"version"`
}

// Workspace says which files a run works on.
type Workspace struct {
	// Source is the folder the files come from, "" for an empty workspace.
	Source string `json:"source"`
	// Dir is the folder the tools see.
	Dir string `json:"dir"`
	// Strategy is Copy, Worktree, InPlace or Empty.
	Strategy string `json:"strategy"`
}

// RunFinished closes a run. It is durable before the program exits.
type RunFinished struct {
	// Phase is Succeeded, Failed, Cancelled or Suspended.
	Phase string `json:"phase"`
	// Reason is a word of package reason.
	Reason string `json:"reason"`
	// ExitCode of the command line.
	ExitCode int `json:"exitCode"`
	// Message says why, for people; "" when the run completed.
	Message string `json:"message,omitempty"`
	// Hint is the next step for people.
	Hint string `json:"hint,omitempty"`
	// Output is the final answer, or the partial one of a run that failed.
	Output string `json:"output"`
	Steps  int    `json:"steps"`
	// Tokens of the whole run.
	Tokens message.Usage `json:"tokens"`
	// Cost in US dollars as a decimal; nil when a price is unknown, or the tokens
	// of an answer are.
	Cost *message.Cost `json:"cost"`
	// DurationMs is the time processes worked on the run.
	DurationMs int64 `json:"durationMs"`
}

// UserMessage is a message to the model after the first prompt.
type UserMessage struct {
	Text string `json:"text"`
	// Synthetic text was written by the runner, for example to say what is
	// wrong with an answer.
	Synthetic bool `json:"synthetic,omitempty"`
}

// MessageReceived is a message that somebody sent to the run while it went on. It
// is durable before the next request, with which the model reads it.
type MessageReceived struct{ message.Incoming }

// StepStart opens a step: one model call and the tool calls it asks for.
type StepStart struct {
	// Step counts from 1.
	Step int `json:"step"`
}

// StepFinish closes a step.
type StepFinish struct {
	Step   int            `json:"step"`
	Finish message.Finish `json:"finish"`
	Tokens message.Usage  `json:"tokens"`
	Cost   *message.Cost  `json:"cost,omitempty"`
	// Calls of the step by what became of them; absent in a step without calls.
	Calls *message.CallCounts `json:"calls,omitempty"`
}

// ModelRequest is a request that is about to be sent.
type ModelRequest struct {
	Step int `json:"step"`
	// Messages in the conversation.
	Messages int `json:"messages"`
	// NoTools is set on a closing request.
	NoTools bool `json:"noTools,omitempty"`
	// Summary is set on a request for a summary; its answer comes as
	// context.compaction.
	Summary bool `json:"summary,omitempty"`
}

// ModelResponse is a complete answer. What was streamed before it counts only now.
type ModelResponse struct {
	Model  message.ModelRef `json:"model"`
	Finish message.Finish   `json:"finish"`
	Tokens message.Usage    `json:"tokens"`
	// Estimate is what the request and the answer may have taken, where the
	// provider did not count them or the answer was stopped; Tokens are 0 then. The
	// limits of the run count it.
	Estimate *message.Usage `json:"estimate,omitempty"`
	// Cost of the answer; absent when its price or its tokens are unknown.
	Cost       *message.Cost `json:"cost,omitempty"`
	DurationMs int64         `json:"durationMs"`
	// FirstByteMs is the time to the first piece of the answer.
	FirstByteMs int64 `json:"firstByteMs,omitempty"`
}

// ModelRetry is a request that failed and is sent again; what the attempt has
// streamed is void.
type ModelRetry struct{ message.Retry }

// TextStart opens a text part.
type TextStart struct{}

// TextDelta is a piece of a text part.
type TextDelta struct {
	Text string `json:"text"`
}

// TextEnd closes a text part and holds the whole of it.
type TextEnd struct {
	Text string `json:"text"`
	// Metadata is what the provider wants back with it.
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// ReasoningStart opens a reasoning part.
type ReasoningStart struct{}

// ReasoningDelta is a piece of a reasoning part.
type ReasoningDelta struct {
	Text string `json:"text"`
}

// ReasoningEnd closes a reasoning part and holds the whole of it.
type ReasoningEnd struct {
	Text string `json:"text"`
	// Metadata is what the provider wants back with it.
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// ToolInputStart opens a tool call: the model has begun to write it.
type ToolInputStart struct {
	// Tool as the model wrote it.
	Tool string `json:"tool"`
}

// ToolInputDelta is a piece of a call's arguments.
type ToolInputDelta struct {
	Text string `json:"text"`
	// Metadata is what the provider wants back with the call; it comes with the
	// last piece.
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// ToolInputEnd is the complete call, pending.
type ToolInputEnd struct {
	// Tool is the call name after repair.
	Tool string `json:"tool"`
	// Raw is what the model wrote as arguments.
	Raw string `json:"raw"`
	// Input is Raw as checked arguments; absent when it is none.
	Input json.RawMessage `json:"input,omitempty"`
	// Workspace identifies the contents of the files before the call: equal
	// contents have equal values. It is there when the call resembles an earlier one,
	// for the loop guard; "?" is a state that could not be determined.
	Workspace string `json:"workspace,omitempty"`
}

// PolicyDecision is the policy's answer to a call.
type PolicyDecision struct{ message.Decision }

// ApprovalRequested is a question to a person.
type ApprovalRequested struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	Rule string          `json:"rule"`
	Risk string          `json:"risk,omitempty"`
	// Message says why the rule asks.
	Message string `json:"message,omitempty"`
	// Hash binds an answer to exactly this call.
	Hash string `json:"hash,omitempty"`
	// ExpiresAt in milliseconds since 1970; 0 is never.
	ExpiresAt int64 `json:"expiresAt,omitempty"`
	// Unknown says that the call was interrupted and may have happened already.
	Unknown bool `json:"unknown,omitempty"`
}

// ApprovalDecided is the answer. It is durable before the call runs.
type ApprovalDecided struct{ message.Answer }

// ToolCall is the intent to run a call. It is durable before the tool is asked.
type ToolCall struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	// Key is the idempotency key, the same on every attempt.
	Key string `json:"key,omitempty"`
	// Attempt is 2 or more when a call that was interrupted runs again.
	Attempt int `json:"attempt,omitempty"`
}

// ToolProgress is the newest output of a call that still runs, at most 4 KB.
type ToolProgress struct {
	Text string `json:"text"`
}

// QuestionAsked is a question that a running call asks a person. It is not an
// approval: the answer goes to the tool. A call asks one question at a time.
type QuestionAsked struct{ message.Inquiry }

// QuestionAnswered closes a question of a running call. A question that is open
// when its call ends, or when its process is killed, is closed without an answer.
type QuestionAnswered struct{ message.Reply }

// ToolResult is the result of a call that completed. It is durable before the
// next intent.
type ToolResult struct{ message.ToolResult }

// ToolError is the result of a call that failed; its code says how.
type ToolError struct{ message.ToolResult }

// ContextPrune takes old tool output out of the conversation. The journal keeps it.
type ContextPrune struct {
	Calls []PrunedCall `json:"calls"`
	// Before and After are the estimated tokens of the next request.
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// PrunedCall is a call whose output is left out from now on.
type PrunedCall struct {
	Call string `json:"call"`
	// Blob holds the output that the model has read.
	Blob string `json:"blob"`
}

// ContextCompaction replaces the conversation before a message by a summary.
type ContextCompaction struct {
	message.Compaction
	// Summary is what the model reads from now on.
	Summary string `json:"summary"`
	// Before and After are the estimated tokens of the next request.
	Before int64 `json:"before"`
	After  int64 `json:"after"`
	// Model that wrote the summary, and what it took.
	Model  message.ModelRef `json:"model"`
	Tokens message.Usage    `json:"tokens"`
	// Estimate as in model.response.
	Estimate   *message.Usage `json:"estimate,omitempty"`
	Cost       *message.Cost  `json:"cost,omitempty"`
	DurationMs int64          `json:"durationMs"`
}

// WorkspaceSnapshot records the state of the files before a run.
type WorkspaceSnapshot struct {
	// Snapshot is the blob that lists path, mode and hash of every file.
	Snapshot string `json:"snapshot"`
	Files    int    `json:"files"`
	Bytes    int64  `json:"bytes"`
}

// WorkspacePatch records what a run changed.
type WorkspacePatch struct {
	Files []FileChange `json:"files"`
	// Diff is the blob that holds the unified diff.
	Diff string `json:"diff,omitempty"`
	// Change is the blob from which exactly this change can be applied.
	Change string `json:"change,omitempty"`
	// Omitted is how many changed files are not in Files, because there are too
	// many; Change holds all of them.
	Omitted int `json:"omitted,omitempty"`
	// Error says why what the run changed is not completely known; "" when it is.
	// Such a change is not applied.
	Error string `json:"error,omitempty"`
}

// FileChange is one changed file.
type FileChange struct {
	// Path relative to the source folder, with slashes.
	Path string `json:"path"`
	// Change is added, modified or deleted.
	Change string `json:"change"`
}

// EgressConnection is one connection that a contained tool asked for, recorded when
// it has ended. A CONNECT tunnel is one; so is each request of plain HTTP that
// goes to another server.
type EgressConnection struct {
	// Tools that share the network the connection came from; the call, in the
	// envelope, is set where only one was running.
	Tools []string `json:"tools"`
	// Host and Port as the tool wrote them, in lower case and without a final dot.
	Host string `json:"host"`
	Port int    `json:"port"`
	// Address that was dialled; "" when nothing was.
	Address string `json:"address,omitempty"`
	// Decision is allow or deny; Rule is the entry of spec.network.allow that
	// matched, or what forbade it.
	Decision message.Action `json:"decision"`
	Rule     string         `json:"rule,omitempty"`
	// Sent and Received are bytes as the tool sees it.
	Sent       int64 `json:"sent"`
	Received   int64 `json:"received"`
	DurationMs int64 `json:"durationMs"`
	// Error is why an allowed connection failed or was cut; "" when it did not.
	Error string `json:"error,omitempty"`
}

// Warning is something a person should know that did not stop the run.
type Warning struct {
	Message string `json:"message"`
}

// Unknown is a payload of a type this version does not know.
type Unknown struct {
	Of  Type
	Raw json.RawMessage
}

// Type implements Payload, as do all that follow.
func (RunStarted) Type() Type        { return TypeRunStarted }
func (RunResumed) Type() Type        { return TypeRunResumed }
func (RunFinished) Type() Type       { return TypeRunFinished }
func (UserMessage) Type() Type       { return TypeUserMessage }
func (MessageReceived) Type() Type   { return TypeMessageReceived }
func (StepStart) Type() Type         { return TypeStepStart }
func (StepFinish) Type() Type        { return TypeStepFinish }
func (ModelRequest) Type() Type      { return TypeModelRequest }
func (ModelResponse) Type() Type     { return TypeModelResponse }
func (ModelRetry) Type() Type        { return TypeModelRetry }
func (TextStart) Type() Type         { return TypeTextStart }
func (TextDelta) Type() Type         { return TypeTextDelta }
func (TextEnd) Type() Type           { return TypeTextEnd }
func (ReasoningStart) Type() Type    { return TypeReasoningStart }
func (ReasoningDelta) Type() Type    { return TypeReasoningDelta }
func (ReasoningEnd) Type() Type      { return TypeReasoningEnd }
func (ToolInputStart) Type() Type    { return TypeToolInputStart }
func (ToolInputDelta) Type() Type    { return TypeToolInputDelta }
func (ToolInputEnd) Type() Type      { return TypeToolInputEnd }
func (PolicyDecision) Type() Type    { return TypePolicyDecision }
func (ApprovalRequested) Type() Type { return TypeApprovalRequested }
func (ApprovalDecided) Type() Type   { return TypeApprovalDecided }
func (ToolCall) Type() Type          { return TypeToolCall }
func (ToolProgress) Type() Type      { return TypeToolProgress }
func (QuestionAsked) Type() Type     { return TypeQuestionAsked }
func (QuestionAnswered) Type() Type  { return TypeQuestionAnswered }
func (ToolResult) Type() Type        { return TypeToolResult }
func (ToolError) Type() Type         { return TypeToolError }
func (ContextPrune) Type() Type      { return TypeContextPrune }
func (ContextCompaction) Type() Type { return TypeContextCompaction }
func (WorkspaceSnapshot) Type() Type { return TypeWorkspaceSnapshot }
func (WorkspacePatch) Type() Type    { return TypeWorkspacePatch }
func (EgressConnection) Type() Type  { return TypeEgressConnection }
func (Warning) Type() Type           { return TypeWarning }
func (u Unknown) Type() Type         { return u.Of }

// Payloads returns an empty payload of every known type, in the order of the
// constants: for decoding, schemas and tests.
func Payloads() []Payload {
	return []Payload{
		RunStarted{},
		RunResumed{},
		RunFinished{},
		UserMessage{},
		MessageReceived{},
		StepStart{},
		StepFinish{},
		ModelRequest{},
		ModelResponse{},
		ModelRetry{},
		TextStart{},
		TextDelta{},
		TextEnd{},
		ReasoningStart{},
		ReasoningDelta{},
		ReasoningEnd{},
		ToolInputStart{},
		ToolInputDelta{},
		ToolInputEnd{},
		PolicyDecision{},
		ApprovalRequested{},
		ApprovalDecided{},
		ToolCall{},
		ToolProgress{},
		QuestionAsked{},
		QuestionAnswered{},
		ToolResult{},
		ToolError{},
		ContextPrune{},
		ContextCompaction{},
		WorkspaceSnapshot{},
		WorkspacePatch{},
		EgressConnection{},
		Warning{},
	}
}

var payloadTypes = func() map[Type]reflect.Type {
	m := map[Type]reflect.Type{}
	for _, p := range Payloads() {
		m[p.Type()] = reflect.TypeOf(p)
	}
	return m
}()

func decode(t Type, data json.RawMessage) (Payload, error) {
	rt, ok := payloadTypes[t]
	if !ok {
		return Unknown{t, append(json.RawMessage(nil), data...)}, nil
	}
	v := reflect.New(rt)
	if len(data) > 0 {
		if err := json.Unmarshal(data, v.Interface()); err != nil {
			return nil, err
		}
	}
	return v.Elem().Interface().(Payload), nil
}
