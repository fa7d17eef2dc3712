package host

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	// tailLines of stderr are quoted in errors.
	tailLines = 20
	// tailWidth bounds each of them.
	tailWidth = 500
	// lastWords is how long the end of a process may run ahead of its stderr's.
	lastWords = time.Second
)

// stderrTail remembers the last lines of a program's stderr.
type stderrTail struct {
	// ended is closed when the program's stderr is at its end.
	ended chan struct{}
	once  sync.Once

	mu      sync.Mutex
	sink    io.Writer
	full    []string
	partial []byte
}

// Write implements io.Writer; it never fails.
func (t *stderrTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sink != nil {
		_, _ = t.sink.Write(p)
	}
	for rest := p; len(rest) > 0; {
		line, after, found := bytes.Cut(rest, []byte{'\n'})
		if room := tailWidth*4 - len(t.partial); room > 0 {
			t.partial = append(t.partial, line[:min(len(line), room)]...)
		}
		if found {
			t.push()
		}
		rest = after
	}
	return len(p), nil
}

func (t *stderrTail) push() {
	s := clean(string(t.partial))
	t.partial = t.partial[:0]
	if strings.TrimSpace(s) == "" {
		return
	}
	if r := []rune(s); len(r) > tailWidth {
		s = string(r[:tailWidth]) + "…"
	}
	if len(t.full) == tailLines {
		t.full = append(t.full[:0], t.full[1:]...)
	}
	t.full = append(t.full, s)
}

// tee copies the program's stderr before it goes to go-plugin, which does not use it.
type tee struct {
	io.ReadCloser
	tail *stderrTail
}

// Read implements io.Reader.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if n > 0 {
		_, _ = t.tail.Write(p[:n])
	}
	if err != nil {
		t.tail.once.Do(func() { close(t.tail.ended) })
	}
	return n, err
}

// detach ends the writes to the sink, whose owner is about to go.
func (t *stderrTail) detach() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sink = nil
}

// last returns the last lines of a program that has ended. It waits a moment
// for those still on their way.
func (t *stderrTail) last() []string {
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-t.ended:
	case <-timer.C:
	}
	return t.lines()
}

// lines returns the last lines, cleaned.
func (t *stderrTail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.partial) > 0 {
		t.push()
	}
	return append([]string(nil), t.full...)
}

// escapes are the sequences with which a program could write to the terminal of a user who
// reads the error.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)?|[@-Z\\\\-_])")
})

// clean returns text that shows what it is: no escape sequences, no control and
// no invisible format characters.
func clean(s string) string {
	s = escapes().ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == '\u2028', r == '\u2029':
			return -1
		}
		return r
	}, s)
}
