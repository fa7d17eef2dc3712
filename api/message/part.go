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

// Part is a piece of a message. Which of its fields are set follows from Type:
// text and reasoning have Text and Metadata, every other type the field of its
// name. A part of another type stands in Fields as a whole.
type Part struct {
	ID   string
	Type PartType
	// Text of a text or reasoning part.
	Text string
	// Synthetic text was written by the runner, not by a person or a model.
	Synthetic bool
	// Ignored text is shown to people and left out of model requests.
	Ignored bool
	// Metadata of a text or reasoning part is the provider's: a signature, an
	// encrypted item. It goes back to that provider and model only.
	Metadata json.RawMessage

	Tool       *ToolPart
	File       *File
	Step       *Step
	Snapshot   *Snapshot
	Patch      *Patch
	Agent      *AgentRef
	Subtask    *Subtask
	Retry      *Retry
	Compaction *Compaction

	// Start and End in milliseconds since 1970; 0 is not yet.
	Start, End int64
	// Fields holds the JSON members this version does not name, so that parts
	// of a later version survive a round trip.
	Fields map[string]json.RawMessage
}

// File is a file that is part of a message.
type File struct {
	Mime     string `json:"mime"`
	Filename string `json:"filename,omitempty"`
	// URL where the content is: data:, file:, blob: or mcp:.
	URL    string      `json:"url"`
	Source *FileSource `json:"source,omitempty"`
}

// FileSource says what a file shows.
type FileSource struct {
	// Type is file, symbol or resource.
	Type string `json:"type"`
	Path string `json:"path,omitempty"`
	// Name of a symbol or URI of a resource.
	Name string `json:"name,omitempty"`
	// Lines of the range, counted from 1, the last one included; 0 is the whole.
	FirstLine int `json:"firstLine,omitempty"`
	LastLine  int `json:"lastLine,omitempty"`
}

// Step is the begin (step-start) or the end (step-finish) of one model call and
// the tool calls it asked for.
type Step struct {
	// Step counts from 1.
	Step int `json:"step"`
	// Snapshot of the files, where one was taken.
	Snapshot string `json:"snapshot,omitempty"`
	// Reason, Tokens and Cost of a step-finish.
	Reason Finish `json:"reason,omitempty"`
	Tokens *Usage `json:"tokens,omitempty"`
	Cost   *Cost  `json:"cost,omitempty"`
}

// Snapshot is the state of the files.
type Snapshot struct {
	// Hash is the blob that lists path, mode and hash of every file.
	Hash string `json:"hash"`
}

// Patch is a change of the files.
type Patch struct {
	// Hash is the blob of the change.
	Hash  string   `json:"hash"`
	Files []string `json:"files"`
}

// AgentRef is an agent that a prompt names.
type AgentRef struct {
	Name string `json:"name"`
	// Source is the text that named it.
	Source string `json:"source,omitempty"`
}

// Subtask is work for a subagent.
type Subtask struct {
	Agent       string    `json:"agent"`
	Prompt      string    `json:"prompt"`
	Description string    `json:"description,omitempty"`
	Model       *ModelRef `json:"model,omitempty"`
	Command     string    `json:"command,omitempty"`
}

// Compaction stands where a summary replaces what was said before.
type Compaction struct {
	// Auto says that no person asked for it; Overflow that the provider had
	// refused the request as too long.
	Auto     bool `json:"auto,omitempty"`
	Overflow bool `json:"overflow,omitempty"`
	// TailStart is the first message that is kept word for word; "" when none is.
	TailStart string `json:"tailStart,omitempty"`
}

type partJSON struct {
	ID         string          `json:"id"`
	Type       PartType        `json:"type"`
	Text       string          `json:"text,omitempty"`
	Synthetic  bool            `json:"synthetic,omitempty"`
	Ignored    bool            `json:"ignored,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Tool       *ToolPart       `json:"tool,omitempty"`
	File       *File           `json:"file,omitempty"`
	Step       *Step           `json:"step,omitempty"`
	Snapshot   *Snapshot       `json:"snapshot,omitempty"`
	Patch      *Patch          `json:"patch,omitempty"`
	Agent      *AgentRef       `json:"agent,omitempty"`
	Subtask    *Subtask        `json:"subtask,omitempty"`
	Retry      *Retry          `json:"retry,omitempty"`
	Compaction *Compaction     `json:"compaction,omitempty"`
	Start      int64           `json:"start,omitempty"`
	End        int64           `json:"end,omitempty"`
}

var partFields = []string{
	"id", "type", "text", "synthetic", "ignored", "metadata", "tool", "file", "step", "snapshot", "patch",
	"agent", "subtask", "retry", "compaction", "start", "end",
}

// MarshalJSON writes the named fields and, after them, the unknown ones.
func (p Part) MarshalJSON() ([]byte, error) {
	known, err := json.Marshal(partJSON{
		p.ID, p.Type, p.Text, p.Synthetic, p.Ignored, p.Metadata, p.Tool, p.File, p.Step, p.Snapshot, p.Patch,
		p.Agent, p.Subtask, p.Retry, p.Compaction, p.Start, p.End,
	})
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
	*p = Part{
		k.ID, k.Type, k.Text, k.Synthetic, k.Ignored, k.Metadata, k.Tool, k.File, k.Step, k.Snapshot, k.Patch,
		k.Agent, k.Subtask, k.Retry, k.Compaction, k.Start, k.End, all,
	}
	return nil
}
