package message

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
