package message

import "encoding/json"

// Prompt is the part of a model request that stays the same for a whole run:
// what changes least comes first, so that a provider's cache can keep it.
type Prompt struct {
	System string
	Tools  []ToolSpec
	// Output is the JSON Schema that the final answer must satisfy; nil asks for
	// none. A provider that can hold its model to it does.
	Output json.RawMessage
	// CacheKey is the same for requests that are likely to begin alike: a hint for
	// a provider that keeps beginnings. May be empty.
	CacheKey string
}

// Request asks for one answer to the conversation so far.
type Request struct {
	// ID names the request in the journal.
	ID string
	// NoTools leaves the tools out of a closing request.
	NoTools bool
	// Aside is asked instead of the conversation, which stays as it is.
	Aside *Aside
}

// Aside is a question beside the conversation, without tools: a summary of it.
type Aside struct {
	// System prompt and the one user message.
	System, Text string
	// MaxOutputTokens of the answer; 0 leaves the model's own limit.
	MaxOutputTokens int64
}

// DeltaKind says what a delta belongs to.
type DeltaKind string

// The kinds of streamed pieces.
const (
	DeltaText      DeltaKind = "text"
	DeltaReasoning DeltaKind = "reasoning"
	// DeltaTool is a piece of a tool call's arguments, Index says of which.
	DeltaTool DeltaKind = "tool"
	// DeltaRetry says that the request failed and is sent again: everything
	// streamed before belongs to a void attempt.
	DeltaRetry DeltaKind = "retry"
)

// Delta is a piece of an answer while it is streamed. It is for watchers: an
// answer is complete only when the model has returned it.
type Delta struct {
	Kind DeltaKind
	Text string
	// Index, Tool and Call of a DeltaTool: the position of the call, its name and
	// its id as the model wrote them; the first piece of a call carries both.
	Index int
	Tool  string
	Call  string
	// Retry describes a DeltaRetry.
	Retry *Retry
}

// Retry is a failed request that is sent again.
type Retry struct {
	// Attempt that failed, counted from 1, of Attempts.
	Attempt  int `json:"attempt"`
	Attempts int `json:"attempts"`
	// Class of the error, for example "429", "connection", "stream".
	Class string `json:"class"`
	Error string `json:"error"`
	// WaitMillis until the next attempt.
	WaitMillis int64 `json:"waitMillis"`
	// Fallback is the Model that is asked instead; "" is the same one again.
	Fallback string `json:"fallback,omitempty"`
}

// Output is a complete answer of a model.
type Output struct {
	Text      string
	Reasoning string
	Calls     []CallRequest
	// TextMetadata and ReasoningMetadata are what the provider wants back with the
	// text and with the reasoning: a signature, an encrypted item. A reasoning that
	// is nothing else has no text.
	TextMetadata, ReasoningMetadata json.RawMessage
	Finish                          Finish
	Usage                           Usage
	// Uncounted says that the provider did not say how many tokens the answer
	// took; limits count what it may have been.
	Uncounted bool
	// Model that answered.
	Model ModelRef
	// Warnings about the answer, such as a usage that cannot be.
	Warnings []string
}

// CallRequest is a tool call as the model wrote it, unchecked.
type CallRequest struct {
	ID   string
	Tool string
	Args string
	// Metadata is what the provider wants back with the call.
	Metadata json.RawMessage
}
