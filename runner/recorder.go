package runner

import (
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// recorder is where every event of a run passes: into the journal, into the
// view that reports read, and to whoever watches, in one order.
type recorder struct {
	journal *journal.Writer
	watch   func(event.Event)

	mu   sync.Mutex
	view view.Run
}

// Append implements loop.Journal. It returns the event as it stands in the
// journal: numbered, and without secrets.
func (r *recorder) Append(e event.Event) (event.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, err := r.journal.Append(e)
	if err != nil {
		return e, err
	}
	if err := r.view.Apply(e); err != nil {
		return e, err
	}
	if r.watch != nil {
		r.watch(e)
	}
	return e, nil
}

// Sync implements loop.Journal.
func (r *recorder) Sync() error { return r.journal.Sync() }

// PutBlob implements loop.Journal.
func (r *recorder) PutBlob(b []byte) (string, error) { return r.journal.PutBlob(b) }

func (r *recorder) tell(p event.Payload) error {
	_, err := r.Append(event.Event{Data: p})
	return err
}

// used is what a run has used of its limits.
type used struct {
	Tokens  message.Usage
	Steps   int
	Started time.Time
}

func (r *recorder) used() used {
	r.mu.Lock()
	defer r.mu.Unlock()
	return used{r.view.Tokens, r.view.Steps, r.view.StartTime}
}
