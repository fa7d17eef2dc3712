package display

import (
	"strings"

	"agentctl.dev/agentctl/api/event"
)

// Reverted is a run that was taken back to a message.
type Reverted struct {
	Run string `json:"run"`
	// To is the first message that is taken back; Undo says that this was undone.
	To   string `json:"to"`
	Undo bool   `json:"undo"`
	// Messages are taken back, or are there again.
	Messages int `json:"messages"`
	// Dir is the folder with the files, Files are those that were changed there.
	Dir   string             `json:"dir"`
	Files []event.FileChange `json:"files"`
	// Left are files that others have added: they stay.
	Left []string `json:"left"`
	// Effects are what the run did outside. It stays done.
	Effects []Effect `json:"effects"`
}

// Effect is something that a run has done outside of its files.
type Effect struct {
	Kind string `json:"kind"`
	Call string `json:"call,omitempty"`
	Text string `json:"text"`
}

// WriteText lists what was done, and what was not.
func (r Reverted) WriteText(s *Screen) error {
	var b strings.Builder
	b.WriteString("reverted run/" + Line(r.Run) + " to " + Line(r.To))
	if r.Undo {
		b.Reset()
		b.WriteString("undid the revert of run/" + Line(r.Run) + " to " + Line(r.To))
	}
	b.WriteString(": " + plural(int64(r.Messages), "message") + ", " + plural(int64(len(r.Files)), "changed file"))
	if len(r.Files) > 0 {
		b.WriteString(" in " + Line(r.Dir) + "\n" + fileList(s, r.Files))
	}
	for _, name := range r.Left {
		b.WriteString("\n" + Line(name) + " stays: others have added it")
	}
	for _, e := range r.Effects {
		b.WriteString("\nstays done: " + Line(e.Text))
	}
	return Text(s, b.String())
}

// WriteJSON writes one object.
func (r Reverted) WriteJSON(s *Screen) error {
	r.Files, r.Left, r.Effects = append([]event.FileChange{}, r.Files...), append([]string{}, r.Left...), append([]Effect{}, r.Effects...)
	return writeJSON(s, r)
}
