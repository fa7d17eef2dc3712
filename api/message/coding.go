package message

// CodingOutcome is how a coding agent of others ended.
type CodingOutcome string

// The outcomes. Completed is the only success.
const (
	CodingCompleted  CodingOutcome = "completed"
	CodingIncomplete CodingOutcome = "incomplete"
	CodingFailed     CodingOutcome = "failed"
	CodingTimeout    CodingOutcome = "timeout"
	CodingDenied     CodingOutcome = "denied"
)

// Coding is what a coding agent of others has done in a call, as it was found out from
// outside, and what it has used. The run of the call counts that as its own.
type Coding struct {
	// Agent is opencode, codex or claude, Version what its program says it is.
	Agent   string        `json:"agent"`
	Version string        `json:"version,omitempty"`
	Mode    string        `json:"mode"`
	Outcome CodingOutcome `json:"outcome"`
	// Path is the folder of the run's files that it was given; "" is all of them.
	Path string `json:"path,omitempty"`
	// Session is the id by which its conversation can be continued.
	Session string `json:"session,omitempty"`
	// Change is the blob of what it has changed, by which that can be taken over; Diff is
	// the same as text. Both are "" where nothing was changed.
	Change string `json:"change,omitempty"`
	Diff   string `json:"diff,omitempty"`
	// Changes are the names of the files, relative to the files of the run.
	Changes *CopyChanges `json:"changes,omitempty"`
	// Before and After are the blobs of the states of the files.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Log and Errors are the blobs of what it has printed: its events, and stderr.
	Log    string `json:"log,omitempty"`
	Errors string `json:"errors,omitempty"`
	// Requests are those to its model. Tokens are counted by the server, Estimated are those
	// that it has not counted.
	Requests  int    `json:"requests"`
	Tokens    Usage  `json:"tokens"`
	Estimated *Usage `json:"estimated,omitempty"`
	// Cost of the answers whose price is known; Unpriced says that some is not.
	Cost     *Cost `json:"cost,omitempty"`
	Unpriced bool  `json:"unpriced,omitempty"`
}

// Used is what the program has used, as that of a run below; nil of none.
func (c *Coding) Used() *ChildRun {
	if c == nil {
		return nil
	}
	return &ChildRun{Agent: c.Agent, Tokens: c.Tokens, Estimated: c.Estimated, Cost: c.Cost, Unpriced: c.Unpriced}
}

// InCopy is the call as a run that has worked on a copy of the files: task_apply takes its
// changes over by the name run/ID/CALL. Nil where nothing can be taken over.
func (c *Coding) InCopy(run, call string) *ChildRun {
	if c == nil || c.Change == "" || c.Mode != "diff" {
		return nil
	}
	return &ChildRun{Run: run + "/" + call, Agent: c.Agent, Changes: c.Changes}
}
