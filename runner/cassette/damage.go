package cassette

import (
	"fmt"

	"agentctl.dev/agentctl/api/reason"
)

// DamageError describes where a cassette differs from the recording.
type DamageError struct {
	// File and the line in it, counted from 1.
	File string
	Line int
	// Problem in words, and what to do about it.
	Problem, Hint string
}

const (
	damageHint = "take the file from version control again, or record it again with agentctl run --record"
	converted  = "keep version control from converting it: a line *.cassette.jsonl -text in .gitattributes"
)

func (e *DamageError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem) }

// Unwrap gives the error its reason: a damaged recording cannot be replayed.
func (e *DamageError) Unwrap() error {
	return reason.New(reason.ReplayDiverged, "%s", e.Problem).WithHint("%s", e.Hint)
}
