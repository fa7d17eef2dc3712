package message

// CheckState is what became of a check of changed files.
type CheckState string

// The states of a check.
const (
	// CheckClean found nothing, CheckFound something.
	CheckClean CheckState = "clean"
	CheckFound CheckState = "found"
	// CheckFailed could not be carried out; its message says why.
	CheckFailed CheckState = "failed"
	// CheckRefused was not started: a policy does not allow its program.
	CheckRefused CheckState = "refused"
	// CheckTimeout did not end in its time.
	CheckTimeout CheckState = "timeout"
)

// Check is a check that an agent declares in spec.diagnostics, of files that a call has
// changed. It never changes whether the call has succeeded.
type Check struct {
	// Name as declared.
	Name  string     `json:"name"`
	State CheckState `json:"state"`
	// Rule that refused it.
	Rule string `json:"rule,omitempty"`
	// Message is why it found nothing out, or the output of a command that is not read
	// line by line.
	Message string `json:"message,omitempty"`
	// ExitCode of a command; nil for a server.
	ExitCode *int `json:"exitCode,omitempty"`
	// Findings that the model is shown, those in changed files first; More counts the
	// others.
	Findings []Finding `json:"findings,omitempty"`
	More     int       `json:"more,omitempty"`
	// DurationMicros is how long the call waited for it.
	DurationMicros int64 `json:"durationMicros,omitempty"`
}

// Finding is one thing that a check has found.
type Finding struct {
	// File relative to the workspace, or as the program wrote it.
	File string `json:"file"`
	// Line and Column count from 1; 0 is not known.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Severity is error, warning, info or hint; "" is not known.
	Severity string `json:"severity,omitempty"`
	Message  string `json:"message"`
}
