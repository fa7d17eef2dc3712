package event

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/message"
)

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

// ToolProgress is the newest output of a call that still runs, at most 4 KB; or, without a
// text, what it says of itself: a title, and metadata that take the place of earlier ones.
type ToolProgress struct {
	Text  string `json:"text"`
	Title string `json:"title,omitempty"`
	// Metadata is a JSON object of at most 16 KiB.
	Metadata json.RawMessage `json:"metadata,omitempty"`
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
