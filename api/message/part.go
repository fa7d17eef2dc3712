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

// Part is a piece of a message. Which fields are set follows from Type: text
// and reasoning have Text, tool has Tool. Everything else stands in Fields.
type Part struct {
	ID   string
	Type PartType
	// Text of a text or reasoning part.
	Text string
	// Synthetic text was written by the runner, not by a person or a model.
	Synthetic bool
	// Ignored text is shown to people and left out of model requests.
	Ignored bool
	Tool    *ToolPart
	// Start and End in milliseconds since 1970; 0 is not yet.
	Start, End int64
	// Fields holds the JSON members this version does not name, so that parts
	// of a later version survive a round trip.
	Fields map[string]json.RawMessage
}

type partJSON struct {
	ID        string    `json:"id"`
	Type      PartType  `json:"type"`
	Text      string    `json:"text,omitempty"`
	Synthetic bool      `json:"synthetic,omitempty"`
	Ignored   bool      `json:"ignored,omitempty"`
	Tool      *ToolPart `json:"tool,omitempty"`
	Start     int64     `json:"start,omitempty"`
	End       int64     `json:"end,omitempty"`
}

var partFields = []string{"id", "type", "text", "synthetic", "ignored", "tool", "start", "end"}

// MarshalJSON writes the named fields and, after them, the unknown ones.
func (p Part) MarshalJSON() ([]byte, error) {
	known, err := json.Marshal(partJSON{p.ID, p.Type, p.Text, p.Synthetic, p.Ignored, p.Tool, p.Start, p.End})
	if err != nil || len(p.Fields) == 0 {
		return known, err
	}
	rest, err := json.Marshal(p.Fields)
	if err != nil {
		return nil, err
	}
	return append(append(known[:len(known)-1], ','), rest[1:]...), nil
}

// UnmarshalJSON reads the named fields and keeps the others in Fields.
func (p *Part) UnmarshalJSON(b []byte) error {
	var k partJSON
	if err := json.Unmarshal(b, &k); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	for _, name := range partFields {
		delete(all, name)
	}
	if len(all) == 0 {
		all = nil
	}
	*p = Part{k.ID, k.Type, k.Text, k.Synthetic, k.Ignored, k.Tool, k.Start, k.End, all}
	return nil
}
