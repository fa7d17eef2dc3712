package event

import (
	"agentctl.dev/agentctl/api/message"
)

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
