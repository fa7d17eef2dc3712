package diagnose

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

const (
	// maxOutput is what is kept of the output of a command, its beginning.
	maxOutput = 256 << 10
	// killGrace is the time a program has between SIGTERM and SIGKILL.
	killGrace = 500 * time.Millisecond
)

// run runs the command of a check to its end and reads what it wrote.
func (c *Checker) run(ctx context.Context, k *check, root string, argv []string, out *message.Check) ([]message.Finding, error) {
	written := &capped{}
	p, err := c.o.Start(ctx, k.Name, Program{Argv: argv, Stdout: written, Stderr: written})
	if err != nil {
		return nil, fmt.Errorf("start it: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill(killGrace)
		<-p.Done()
		return nil, context.Cause(ctx)
	}
	code, signal := p.End()
	if signal != "" {
		return nil, fmt.Errorf("it ended by the signal %s", signal)
	}
	out.ExitCode = &code
	text := c.o.Clean(written.String())
	if k.Format != v1alpha1.FormatText {
		if found := readLines(text, root); len(found) > 0 {
			return found, nil
		}
	}
	if code != 0 { // it says something that is not understood, perhaps why it cannot check
		out.State, out.Message = message.CheckFound, c.text(lastOf(text, maxSaid), maxSaid)
	}
	return nil, nil
}

// lastOf are whole lines at the end of a text.
func lastOf(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	if at := bytes.IndexByte([]byte(text), '\n'); at >= 0 {
		text = text[at+1:]
	}
	return text
}

// capped keeps the beginning of what is written to it.
type capped struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (w *capped) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p[:min(len(p), maxOutput-len(w.text))]...)
	return len(p), nil
}

func (w *capped) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}
