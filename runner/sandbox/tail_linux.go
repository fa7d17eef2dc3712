package sandbox

import (
	"io"
	"os"
	"strings"
	"sync"
)

// tail keeps the end of a helper's output, for the error when the helper ends.
type tail struct {
	r    *os.File
	mu   sync.Mutex
	text []byte
	done sync.WaitGroup
}

// maxTail bounds them.
const maxTail = 2 << 10

// newTail returns a tail and the file that feeds it.
func newTail() (*tail, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	t := &tail{r: r}
	t.done.Go(func() { _, _ = io.Copy(t, struct{ io.Reader }{r}) })
	return t, w, nil
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.text) < maxTail { // a crash begins with its cause
		t.text = append(t.text, b[:min(len(b), maxTail-len(t.text))]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

func (t *tail) close() {
	if t == nil {
		return
	}
	_ = t.r.Close()
	t.done.Wait()
}
