package sdk

import (
	"context"
	"io"
	"time"
)

// Call is one call of a tool: its caller, and where to write. Its deadline is the
// context's. The zero value works in tests: Progress is discarded and Output is kept for
// Result.
type Call struct {
	// ID of the call, unique within the run.
	ID string
	// Run, Agent, Session and Message identify the caller.
	Run, Agent, Session, Message string
	// Workspace is the absolute root of the run's files; the process starts there.
	Workspace string
	// Hidden are files, relative to Workspace, that a tool which searches folders must
	// leave out: the caller may not read them. A file of a folder in Outside is named by
	// its absolute path.
	Hidden []string
	// Outside are files and folders outside Workspace that this call may use,
	// because the policy or a person has allowed them. They are for this call
	// alone; see Approved.
	Outside []OutsidePath
	// Variables are secrets that results of other tools have supplied for this one; see
	// Getenv and Environ. They are for this call alone.
	Variables []Variable
	// Binding bounds what the call may do besides reading; nil: its isolation alone does. A
	// tool that starts commands for the call has to hold them to it.
	Binding *Binding
	// RecordPrograms asks for the programs that the call executes in the Record of its
	// result. A call with a Binding is recorded whole without being asked.
	RecordPrograms bool
	// Key is the same for every attempt at this call, also after a crash: an
	// idempotency key for services that know such a thing.
	Key string
	// MaxOutput is how many bytes of text the caller keeps; 0 means the SDK's
	// bound of 10 MiB. What a tool writes beyond it is counted and dropped.
	MaxOutput int64
	// AskFunc and HistoryFunc implement Ask and History. Tests of a tool set them; in a
	// program they reach the run.
	AskFunc     func(ctx context.Context, question string, options []string) (string, error)
	HistoryFunc func(ctx context.Context, most int) ([]Message, error)

	out      output
	progress progress
	inform   progress
}

// Progress shows watchers the newest output. Calls come through at most ten
// times a second, the latest wins, and only the last 4 KB are shown.
func (c *Call) Progress(text string) { c.progress.set(text) }

// Metadata tells watchers what the call does, a short title or "", and how far it is: data
// that is encoded as a JSON object of at most 16 KiB. A larger one, or another kind of JSON, is
// dropped. Each takes the place of the one before; calls come through at most ten times a
// second, and the latest wins. No model reads it.
func (c *Call) Metadata(title string, data any) {
	if event := progressEvent(title, data); event != nil {
		c.inform.setEvent(event)
	}
}

// Output streams text of the result, in chunks as they are written. It is safe for use by
// several goroutines and never fails: a tool should continue to drain its program even if
// the text is discarded.
func (c *Call) Output() io.Writer { return outputWriter{c} }

// Written returns what was written to Output in a Call made by a test.
func (c *Call) Written() string {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return string(c.out.buf)
}

type outputWriter struct{ c *Call }

func (w outputWriter) Write(p []byte) (int, error) {
	w.c.out.write(p, w.c.limit())
	return len(p), nil
}

// limit is the number of text bytes that are kept.
func (c *Call) limit() int64 {
	if c.MaxOutput > 0 && c.MaxOutput < hardLimit {
		return c.MaxOutput
	}
	return hardLimit
}

const (
	// hardLimit bounds the text of a call whatever the caller asks for.
	hardLimit = 10 << 20
	// progressEvery is the least time between two progress events.
	progressEvery = 100 * time.Millisecond
)
