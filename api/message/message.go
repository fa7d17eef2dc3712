// Package message holds the conversation as plain data: messages, parts, tool calls and what belongs to them.
//
// Everything here is a value that can be stored, sent and compared. The shapes
// serve the journal, every model provider and every reader of a run alike, so
// the package imports nothing outside the standard library.
package message

// Role says who speaks.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one turn of one speaker. Tool results are not separate messages:
// they belong to the tool parts of the assistant message that asked for them.
// As JSON it keeps of a later version's members those of its parts.
type Message struct {
	ID   string `json:"id"`
	Role Role   `json:"role"`
	// ParentID is the user message an assistant message answers.
	ParentID string `json:"parentID,omitempty"`
	// Agent that wrote the message or to which it is addressed.
	Agent string    `json:"agent,omitempty"`
	Model *ModelRef `json:"model,omitempty"`
	Path  *Path     `json:"path,omitempty"`
	// Mode of the agent that wrote an assistant message: Primary, Subagent or All.
	Mode string `json:"mode,omitempty"`
	// System is the blob that holds the system prompt, Tools are the call names
	// offered; both of a user message.
	System string   `json:"system,omitempty"`
	Tools  []string `json:"tools,omitempty"`
	// Recap of a user message that begins a conversation is set when that is shortened; the
	// newest counts.
	Recap *Recap `json:"recap,omitempty"`
	// Summary marks the message that replaces the conversation before it.
	Summary bool   `json:"summary,omitempty"`
	Parts   []Part `json:"parts"`
	// Finish is why an assistant message ended; empty while it is streamed.
	Finish Finish `json:"finish,omitempty"`
	Usage  Usage  `json:"tokens,omitzero"`
	// Cost of an assistant message; nil when a price is unknown.
	Cost *Cost `json:"cost,omitempty"`
	// Estimate is what the answer may have taken where the provider did not count it.
	Estimate *Usage `json:"estimate,omitempty"`
	// Error that ended an assistant message, "" when none did.
	Error Error `json:"error,omitempty"`
	Time  Time  `json:"time"`
}

// Error says why an assistant message is not complete.
type Error string

// The errors of a message.
const (
	// Aborted messages were cut short: the run was cancelled or died. What was
	// complete of them is kept.
	Aborted Error = "Aborted"
	// Void messages never were answered: their request failed or was given up,
	// and no model is sent them.
	Void Error = "Void"
	// Reverted messages are those after the message to which a person took the run back.
	// No model is sent them.
	Reverted Error = "Reverted"
)

// ModelRef names the model that answered.
type ModelRef struct {
	// Name of the Model object.
	Name string `json:"name"`
	// Provider and Model as the provider knows them.
	Provider string `json:"provider"`
	Model    string `json:"model,omitempty"`
	// Variant of the model, for example its reasoning effort.
	Variant string `json:"variant,omitempty"`
}

// Path is where an assistant message worked.
type Path struct {
	Cwd  string `json:"cwd"`
	Root string `json:"root"`
}

// Time of a message, in milliseconds since 1970; 0 is not yet.
type Time struct {
	Created   int64 `json:"created,omitempty"`
	Completed int64 `json:"completed,omitempty"`
}

// Usage counts tokens. Input holds neither cache reads nor cache writes;
// Reasoning is a part of Output.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
}

// Add returns the sum of two counts.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning,
		CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
	}
}

// Total is what counts against limits.maxTokens: all input and all output.
func (u Usage) Total() int64 { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// Finish is why the model stopped.
type Finish string

// The finish reasons every provider's own words are mapped to.
const (
	FinishStop          Finish = "stop"
	FinishToolCalls     Finish = "tool-calls"
	FinishLength        Finish = "length"
	FinishContentFilter Finish = "content-filter"
	// FinishPause is a turn that the provider has paused: the answer so far is sent
	// back as it is, and the next one continues it.
	FinishPause Finish = "pause"
	// FinishUnknown is none of these: the answer is not whole.
	FinishUnknown Finish = "unknown"
)

// Whole reports whether an answer ended by itself. Any other is half of one: its
// text is not a final answer, and a call in it may lack its arguments.
func (f Finish) Whole() bool { return f == FinishStop || f == FinishToolCalls }

// Open reports whether the message is still being written; nil is not open.
func (m *Message) Open() bool {
	return m != nil && m.Role == RoleAssistant && m.Time.Completed == 0
}

// Text returns the text parts that a reader should see, joined.
func (m *Message) Text() string {
	var s string
	for _, p := range m.Parts {
		if p.Type == PartText && !p.Ignored {
			s += p.Text
		}
	}
	return s
}

// Calls returns the tool parts in the order the model wrote them.
func (m *Message) Calls() []*ToolPart {
	var calls []*ToolPart
	for _, p := range m.Parts {
		if p.Type == PartTool && p.Tool != nil {
			calls = append(calls, p.Tool)
		}
	}
	return calls
}
