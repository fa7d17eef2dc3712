package display

import (
	"strings"

	"agentctl.dev/agentctl/api/safetext"
)

// Publication is what would be sent for a run, or was.
type Publication struct {
	Run, Agent, Digest string
	// Sent says that it was carried out.
	Sent  bool
	Items []PublishedItem
	// Object is the same for programs.
	Object any
}

// WriteJSON writes it as an object.
func (p *Publication) WriteJSON(s *Screen) error { return writeJSON(s, p.Object) }

// PublishedItem is one item of it.
type PublishedItem struct {
	Name, Type, Target, State, Decision, Rule, Reason, Title, Text, URL, Error string
	Files                                                                      []string
}

// Write writes what is sent, for a person. No line of an item begins a line of the output: it
// could be a command for what reads the log.
func (p *Publication) Write(s *Screen, next string) error {
	rows := [][]string{{"NAME", "TYPE", "TARGET", "STATE", "DECISION", "RULE", "URL"}}
	for i := range p.Items {
		it := &p.Items[i]
		rows = append(rows, []string{Line(it.Name), Line(it.Type), Line(it.Target), Line(it.State), Line(it.Decision), Line(it.Rule), dash(Line(it.URL))})
	}
	s.print(table(rows))
	for i := range p.Items {
		it := &p.Items[i]
		if it.Error != "" {
			s.print(Line(it.Name) + ": " + Line(it.Error) + "\n")
		}
		if p.Sent {
			continue
		}
		s.print("\n" + s.paint(bold, Line(it.Name)+": "+Line(it.Type)) + "\n")
		if it.Reason != "" {
			s.print("  " + Line(it.Reason) + "\n")
		}
		if it.Title != "" {
			s.print("  title: " + Line(it.Title) + "\n")
		}
		for _, f := range it.Files {
			s.print("  file: " + Line(f) + "\n")
		}
		for line := range strings.Lines(it.Text) {
			line = safetext.Visible(strings.TrimSuffix(line, "\n"), safetext.Tabs)
			s.print("  | " + strings.ReplaceAll(line, "##[", "##<>[") + "\n")
		}
	}
	if !p.Sent {
		s.print("\ndigest: " + Line(p.Digest) + "\n" + next + "\n")
	}
	return s.Err()
}
