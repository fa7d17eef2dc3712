package display

import (
	"fmt"
	"strings"
)

// Diagnosis is what agentctl doctor shows.
type Diagnosis struct {
	Rows []DiagnosisRow
	// Tried counts the ways out of a sandbox that were tried; Open names those
	// that led outside.
	Tried int
	Open  []string
	// Verdict is the last line; Bad makes it red.
	Verdict string
	Bad     bool
}

// DiagnosisRow is one part of the containment.
type DiagnosisRow struct {
	Name, Level, Why, Hint string
	OK, Needed             bool
}

// Write writes a table, what the escape came to, and the verdict.
func (d Diagnosis) Write(s *Screen) error {
	rows := [][]string{{"CONTROL", "LEVEL", "OK", "WHY"}}
	for _, r := range d.Rows {
		answer := s.paint(green, "yes")
		if !r.OK {
			answer = s.paint(yellow, "no")
		}
		if !r.OK && r.Needed {
			answer = s.paint(red, "no")
		}
		rows = append(rows, []string{r.Name, r.Level, answer, Line(r.Why)})
	}
	s.print(table(rows))
	for _, r := range d.Rows {
		if !r.OK && r.Hint != "" {
			s.print(fmt.Sprintf("%s: %s\n", r.Name, Line(r.Hint)))
		}
	}
	switch {
	case len(d.Open) > 0:
		s.print(s.paint(red, "escape: "+plural(int64(len(d.Open)), "way")+" out of a sandbox: "+Line(strings.Join(d.Open, ", "))) + "\n")
	case d.Tried > 0:
		s.print(fmt.Sprintf("escape: %d ways out of a sandbox were tried, none is open\n", d.Tried))
	}
	verdict := Line(d.Verdict)
	if d.Bad {
		verdict = s.paint(red, verdict)
	}
	s.print(verdict + "\n")
	return s.Err()
}
