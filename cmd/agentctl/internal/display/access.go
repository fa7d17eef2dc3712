package display

import (
	"fmt"

	"agentctl.dev/agentctl/api/message"
)

// Access is what policies say about a call.
type Access struct {
	Decision message.Action
	// Rule as policy/rule, Place as file:line or "".
	Rule, Place, Reason string
	// Change lists what would have to be otherwise.
	Change, Warnings []string
	// Reaches lists the agents that the call can start.
	Reaches []string
}

// Write writes the answer for a person.
func (a Access) Write(s *Screen) error {
	s.print(s.paint(actionStyle(a.Decision), string(a.Decision)) + "  by " + Line(a.Rule) + s.placed(a.Place) + "\n")
	s.print(Line(a.Reason) + "\n")
	for _, w := range a.Warnings {
		s.print(s.paint(yellow, "warning:") + " " + Line(w) + "\n")
	}
	if len(a.Reaches) > 0 {
		s.print("\nthe call can start:\n")
	}
	for _, r := range a.Reaches {
		s.print("  " + Line(r) + "\n")
	}
	if len(a.Change) > 0 {
		s.print("\nfor this call to be allowed:\n")
	}
	for i, c := range a.Change {
		s.print(fmt.Sprintf("  %d. %s\n", i+1, Line(c)))
	}
	return s.Err()
}

// WriteObject writes any value as one object.
func WriteObject(s *Screen, v any) error { return writeJSON(s, v) }
