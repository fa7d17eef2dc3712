package message

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
