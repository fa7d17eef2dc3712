package environment

import (
	"slices"
	"sync"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
)

// Journal is where an environment records what happens in it.
type Journal interface {
	Append(e event.Event) (event.Event, error)
	// Sync returns when everything appended so far survives a crash.
	Sync() error
	PutBlob(b []byte) (id string, err error)
	GetBlob(id string) ([]byte, error)
	// See calls look with the run as it is in the journal.
	See(look func(*view.Run))
}

// report records warnings, each text once. A sandbox may exist before the journal:
// warnings are kept until it is opened.
type report struct {
	mu      sync.Mutex
	journal Journal
	known   []string
}

// warn records a warning. A journal that fails ends the run for the same reason.
func (r *report) warn(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.known, text) {
		return
	}
	r.known = append(r.known, text)
	if r.journal != nil {
		warn(r.journal, text)
	}
}

// open records the warnings so far, and all further ones at once.
func (r *report) open(j Journal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal = j
	for _, text := range r.known {
		warn(j, text)
	}
}

// opened is the journal; nil before it is opened.
func (r *report) opened() Journal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.journal
}

func warn(j Journal, text string) { _, _ = j.Append(event.Event{Data: event.Warning{Message: text}}) }
