package display

import (
	"fmt"
	"strings"
)

// Diagnosis is what agentctl doctor shows.
type Diagnosis struct {
	Rows []DiagnosisRow
	// Models are the ways to models, Host the other needs of a run.
	Models, Host []DiagnosisRow
	// Tried counts the ways out of a sandbox that were tried; Open names those
	// that led outside.
	Tried int
	Open  []string
	// Verdict is the last line; Bad makes it red.
	Verdict string
	Bad     bool
}

// DiagnosisRow is one part of the containment, or one need of a run.
type DiagnosisRow struct {
	Name, Level, Why, Hint string
	OK, Needed             bool
}

// Write writes a table, what the escape came to, and the verdict.
func (d Diagnosis) Write(s *Screen) error {
	rows := [][]string{{"CONTROL", "LEVEL", "OK", "WHY"}}
	for _, r := range d.Rows {
		answer := s.answer(r.OK)
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
	d.models(s)
	d.host(s)
	verdict := Line(d.Verdict)
	if d.Bad {
		verdict = s.paint(red, verdict)
	}
	s.print(verdict + "\n")
	return s.Err()
}

// models shows the ways to models, how to use those that answer and, where there is
// none, how to get one.
func (d Diagnosis) models(s *Screen) {
	rows, some := [][]string{{"MODELS", "OK", "WHY"}}, false
	for _, r := range d.Models {
		some = some || r.OK
		rows = append(rows, []string{r.Name, s.answer(r.OK), Line(r.Why)})
	}
	s.print("\n" + table(rows))
	for _, r := range d.Models {
		if r.Hint != "" && r.OK == some {
			s.print(fmt.Sprintf("%s: %s\n", r.Name, Line(r.Hint)))
		}
	}
	if !some {
		s.print("no model can be asked yet; agentctl demo caught needs none\n")
	}
}

// host shows the other needs of a run.
func (d Diagnosis) host(s *Screen) {
	rows := [][]string{{"HOST", "OK", "WHY"}}
	for _, r := range d.Host {
		rows = append(rows, []string{r.Name, s.answer(r.OK), Line(r.Why)})
	}
	s.print("\n" + table(rows))
	for _, r := range d.Host {
		if !r.OK && r.Hint != "" {
			s.print(fmt.Sprintf("%s: %s\n", r.Name, Line(r.Hint)))
		}
	}
	s.print("\n")
}

// answer is yes, or a no that keeps nothing from running.
func (s *Screen) answer(ok bool) string {
	if ok {
		return s.paint(green, "yes")
	}
	return s.paint(yellow, "no")
}
