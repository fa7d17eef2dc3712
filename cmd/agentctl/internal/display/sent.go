package display

import (
	"agentctl.dev/agentctl/api/event"
)

// Sent is a message that was left for a run.
type Sent struct {
	ID, Run string
	// Next is the command that continues the run; "" when it runs.
	Next string
	// Object is the same for programs.
	Object any
}

// WriteText says what becomes of the message.
func (m Sent) WriteText(s *Screen) error {
	text := "sent to run/" + Line(m.Run) + "\n"
	if m.Next != "" {
		text = "kept for run/" + Line(m.Run) + "\ncontinue with: " + s.paint(cyan, m.Next) + "\n"
	}
	return Text(s, text)
}

// WriteJSON writes it as an object.
func (m Sent) WriteJSON(s *Screen) error { return writeJSON(s, m.Object) }

// received shows a message that the run has read.
func received(s *Screen, d event.MessageReceived) string {
	line := "  " + s.paint(cyan, "message") + "   " + Line(d.Text)
	if d.By != "" {
		line = "  " + s.paint(cyan, "message") + "   " + Line(d.By) + ": " + Line(d.Text)
	}
	return cut(line, s.width()) + "\n"
}
