package lineedit

import (
	"io"
	"strings"
	"sync"
)

// Asker is where a program asks the person questions, and reads the answers: what is
// entered while a question is open. A text that does not end with a line break is a question.
type Asker struct {
	t     *Terminal
	lines chan string
	end   chan struct{}
	once  sync.Once
	rest  []byte
}

// Asker returns a new one. The caller closes it.
func (t *Terminal) Asker() *Asker {
	return &Asker{t: t, lines: make(chan string, 16), end: make(chan struct{})}
}

// Write shows a question, or what became of it.
func (a *Asker) Write(b []byte) (int, error) {
	t := a.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return len(b), nil
	}
	t.screen.add(string(b))
	open := !strings.HasSuffix(string(b), "\n")
	switch {
	case open && t.asker == nil: // what was being written is no answer
		t.asker, t.stash, t.buffer, t.late = a, t.buffer, buffer{}, t.pasting
	case !open && t.asker == a:
		t.settle()
	}
	t.draw()
	return len(b), nil
}

// settle closes the question. The caller holds mu.
func (t *Terminal) settle() { t.asker, t.buffer, t.stash, t.late = nil, t.stash, buffer{}, false }

func (a *Asker) answer(text string) {
	select {
	case a.lines <- strings.ReplaceAll(text, "\n", " ") + "\n":
	default: // nobody reads them
	}
}

// Read reads answers.
func (a *Asker) Read(b []byte) (int, error) {
	if len(a.rest) == 0 {
		select {
		case text := <-a.lines:
			a.rest = []byte(text)
		case <-a.end:
			return 0, io.EOF
		}
	}
	n := copy(b, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// Close ends the answers; a question that is open is closed.
func (a *Asker) Close() {
	a.once.Do(func() {
		close(a.end)
		t := a.t
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.asker == a {
			t.settle()
			t.draw()
		}
	})
}
