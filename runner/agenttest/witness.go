package agenttest

import (
	"slices"
	"sync"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/evidence"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/journal"
)

// witness keeps what happens in a run and in those below it.
type witness struct {
	mu     sync.Mutex
	events []event.Event
	runs   []*below
}

// see takes an event of the run.
func (w *witness) see(e event.Event) {
	if !expect.Keeps(e.Type()) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) <= maxEvents { // one more shows that there are too many
		w.events = append(w.events, e)
	}
}

// seeBelow takes an event of a run below.
func (w *witness) seeBelow(e event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.IndexFunc(w.runs, func(b *below) bool { return b.Run.ID == e.Run })
	if at < 0 {
		at, w.runs = len(w.runs), append(w.runs, &below{Run: &view.Run{ID: e.Run}})
	}
	b := w.runs[at]
	if err := b.Run.Apply(e); err != nil {
		b.Run.Warnings = append(b.Run.Warnings, err.Error())
	}
	if expect.Keeps(e.Type()) && len(b.Events) <= maxEvents {
		b.Events = append(b.Events, e)
	}
}

// subject is the run that was seen. Files are those in a folder of it; "" for a recording,
// which holds no contents.
func (w *witness) subject(v *view.Run, dir string) *subject {
	s := &subject{Run: v, Events: w.events}
	for _, b := range w.runs {
		s.Below = append(s.Below, *b)
	}
	s.Files = func() (map[string]any, error) {
		if dir == "" {
			return evidence.Files(v, nil)
		}
		return evidence.Files(v, journal.Stored(dir))
	}
	return s
}
