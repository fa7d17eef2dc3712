package display

import (
	"sync"

	"agentctl.dev/agentctl/api/event"
)

// TextLog shows the text that a model writes while it comes, one part after the
// other in whatever order their pieces come.
type TextLog struct {
	mu     sync.Mutex
	screen *Screen
	stream stream
}

// NewTextLog shows texts on a screen. A pipe gets them as they are.
func NewTextLog(s *Screen) *TextLog {
	t := &TextLog{screen: s}
	t.stream.raw = !s.TTY
	t.stream.start(&t.mu, func(text string, _ style) { s.print(text) })
	return t
}

// Event shows the text of an event. The error is that of the screen.
func (t *TextLog) Event(e event.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch d := e.Data.(type) {
	case event.TextDelta:
		t.stream.add(e, d.Text, "")
	case event.TextEnd:
		if !t.stream.has(e.Part) { // pieces may be left out
			t.stream.add(e, d.Text, "")
		}
		t.stream.end(e.Part)
	case event.ModelRetry:
		t.stream.forget()
	}
	return t.screen.Err()
}

// Close shows what was held back, and ends the last line.
func (t *TextLog) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stream.stop()
	return t.screen.Err()
}
