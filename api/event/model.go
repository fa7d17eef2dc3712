package event

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/message"
)

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

// ModelPrice is what the tokens of a model cost.
type ModelPrice struct {
	// Model by its name in the manifests.
	Model string `json:"model"`
	// Source is manifest, catalog (that of this version of agentctl) or free.
	Source string `json:"source"`
	TokenRates
	// Long applies to a request with more than LongAbove tokens of input; absent where
	// all requests cost the same.
	LongAbove int64       `json:"longAbove,omitempty"`
	Long      *TokenRates `json:"long,omitempty"`
}

// TokenRates are prices in US dollars per million tokens, as decimals.
type TokenRates struct {
	Input      string `json:"input"`
	Output     string `json:"output"`
	CacheRead  string `json:"cacheRead,omitempty"`
	CacheWrite string `json:"cacheWrite,omitempty"`
}
