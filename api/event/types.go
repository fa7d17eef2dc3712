package event

import (
	"encoding/json"
	"reflect"
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
	TypeToolsDescribed    Type = "tools.described"
	TypeWorkspaceSnapshot Type = "workspace.snapshot"
	TypeWorkspacePatch    Type = "workspace.patch"
	TypeWorkspaceApplied  Type = "workspace.applied"
	TypeRunReverted       Type = "run.reverted"
	TypePublishItem       Type = "publish.item"
	TypeEgressConnection  Type = "egress.connection"
	TypeSecretResolved    Type = "secret.resolved"
	TypeWarning           Type = "warning"
)

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
func (ToolsDescribed) Type() Type    { return TypeToolsDescribed }
func (WorkspacePatch) Type() Type    { return TypeWorkspacePatch }
func (WorkspaceApplied) Type() Type  { return TypeWorkspaceApplied }
func (RunReverted) Type() Type       { return TypeRunReverted }
func (PublishItem) Type() Type       { return TypePublishItem }
func (EgressConnection) Type() Type  { return TypeEgressConnection }
func (SecretResolved) Type() Type    { return TypeSecretResolved }
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
		ToolsDescribed{},
		WorkspaceSnapshot{},
		WorkspacePatch{},
		WorkspaceApplied{},
		RunReverted{},
		PublishItem{},
		EgressConnection{},
		SecretResolved{},
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
