package message

import "encoding/json"

// AgentRef is an agent that a prompt names.
type AgentRef struct {
	Name string `json:"name"`
	// Source is the text that named it.
	Source string `json:"source,omitempty"`
}

// Expansion is something that the author of a prompt asks for in its text: a call that is made
// before the model is asked, or an agent that is named.
type Expansion struct {
	// Text asks for it in the prompt: @main.go, @reviewer, or !`git log -3`.
	Text string `json:"text"`
	// Tool is the call name of the tool, and Args are its arguments; both empty for an agent.
	Tool string          `json:"tool,omitempty"`
	Args json.RawMessage `json:"args,omitempty"`
	// Agent is the name of the agent.
	Agent string `json:"agent,omitempty"`
}

// Subtask is work for a subagent.
type Subtask struct {
	Agent       string    `json:"agent"`
	Prompt      string    `json:"prompt"`
	Description string    `json:"description,omitempty"`
	Model       *ModelRef `json:"model,omitempty"`
	Command     string    `json:"command,omitempty"`
}

// ChildRun is a run that a call has started, and what it has used. The run of the call
// counts that as its own.
type ChildRun struct {
	Run   string `json:"run"`
	Agent string `json:"agent"`
	// Phase and Reason of its end.
	Phase  string `json:"phase"`
	Reason string `json:"reason"`
	Steps  int    `json:"steps"`
	// Tokens, and Estimated those that no provider has counted.
	Tokens    Usage  `json:"tokens"`
	Estimated *Usage `json:"estimated,omitempty"`
	// Cost of the answers whose price is known; Unpriced says that some is not.
	Cost     *Cost `json:"cost,omitempty"`
	Unpriced bool  `json:"unpriced,omitempty"`
	// Head is the hash of the last event of its journal: the journal of the run above vouches
	// for it. "" in runs of earlier versions.
	Head string `json:"head,omitempty"`
	// Changes are what it has done to its copy of the files; nil where it had none.
	Changes *CopyChanges `json:"changes,omitempty"`
}

// CopyChanges are the files that a run has changed in a copy of another run's files.
type CopyChanges struct {
	// Changed are those that it has added or modified, Deleted those that are gone.
	Changed []string `json:"changed,omitempty"`
	Deleted []string `json:"deleted,omitempty"`
	// Unmergeable is why they cannot be merged; "" if they can.
	Unmergeable string `json:"unmergeable,omitempty"`
}
