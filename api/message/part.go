package message

import "encoding/json"

// PartType says what a part is.
type PartType string

// The part types. A part of another type is kept as it is and handed on.
const (
	PartText       PartType = "text"
	PartReasoning  PartType = "reasoning"
	PartTool       PartType = "tool"
	PartStepStart  PartType = "step-start"
	PartStepFinish PartType = "step-finish"
	PartFile       PartType = "file"
	PartSnapshot   PartType = "snapshot"
	PartPatch      PartType = "patch"
	PartSubtask    PartType = "subtask"
	PartAgent      PartType = "agent"
	PartRetry      PartType = "retry"
	PartCompaction PartType = "compaction"
)

// content returns the member that holds what a part of this type is about, ""
// when this version does not know the type.
func (t PartType) content() string {
	switch t {
	case PartText, PartReasoning:
		return "text"
	case PartStepStart, PartStepFinish:
		return "step"
	case PartTool, PartFile, PartSnapshot, PartPatch, PartSubtask, PartAgent, PartRetry, PartCompaction:
		return string(t)
	}
	return ""
}

// Part is a piece of a message. Which of its fields is set follows from Type:
// Text of text and reasoning, Step of step-start and step-finish, and of every
// other type the field of its name. All types have the fields around them. Of
// a type that this version does not know, Fields has everything.
type Part struct {
	ID   string   `json:"id,omitempty"`
	Type PartType `json:"type"`
	// Text of a text or reasoning part.
	Text string `json:"text,omitempty"`

	Tool       *ToolPart   `json:"tool,omitempty"`
	File       *File       `json:"file,omitempty"`
	Step       *Step       `json:"step,omitempty"`
	Snapshot   *Snapshot   `json:"snapshot,omitempty"`
	Patch      *Patch      `json:"patch,omitempty"`
	Agent      *AgentRef   `json:"agent,omitempty"`
	Subtask    *Subtask    `json:"subtask,omitempty"`
	Retry      *Retry      `json:"retry,omitempty"`
	Compaction *Compaction `json:"compaction,omitempty"`

	// Synthetic parts were made by the runner, not by a person or a model.
	Synthetic bool `json:"synthetic,omitempty"`
	// Ignored text is shown to people and left out of model requests.
	Ignored bool `json:"ignored,omitempty"`
	// Origin of a text of a user message; a file has its own. Absent in runs of earlier
	// versions.
	Origin *Origin `json:"origin,omitempty"`
	// Metadata is the provider's: a signature, an encrypted item. It goes back to
	// that provider and model only.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Start and End in milliseconds since 1970; 0 is not yet.
	Start int64 `json:"start,omitempty"`
	End   int64 `json:"end,omitempty"`
	// Fields is the object of the members that this version does not name, as
	// they were written and in their order, so that the parts of a later version
	// survive a round trip. Nil when there are none.
	Fields json.RawMessage `json:"-"`
}
