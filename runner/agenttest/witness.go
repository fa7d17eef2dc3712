package agenttest

import (
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/expect"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/workspace"
)

// Bounds of what expectations read of changed files.
const (
	maxContent  = 256 << 10
	maxContents = 16 << 20
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
	s.Files = func() (map[string]file, error) {
		if v.Changes.Error != "" {
			return nil, fmt.Errorf("what the run has changed is not completely known: %s", v.Changes.Error)
		}
		if dir == "" || v.Changes.Change == "" {
			return named(v), nil
		}
		return changed(v, runs.Stored(dir))
	}
	return s
}

// named are the changed files without their contents.
func named(v *view.Run) map[string]file {
	all := map[string]file{}
	for _, f := range v.Changes.Files {
		all[f.Path] = file{Change: f.Change, Type: workspace.TypeFile}
	}
	return all
}

// changed are the changed files, with the contents of those that are text and not too large.
func changed(v *view.Run, blobs workspace.Blobs) (map[string]file, error) {
	change, err := workspace.ReadChange(blobs, v.Changes.Change)
	if err != nil {
		return nil, err
	}
	all, left := map[string]file{}, int64(maxContents)
	for _, f := range change.Files {
		out := file{Change: f.Change, Type: workspace.TypeFile}
		if f.New == nil {
			if f.Old != nil {
				out.Type = f.Old.Type
			}
			all[string(f.Path)] = out
			continue
		}
		out.Type, out.Size, out.Target = f.New.Type, f.New.Size, string(f.New.Target)
		if f.New.Blob != "" && f.New.Type == workspace.TypeFile && f.New.Size <= min(maxContent, left) {
			b, err := blobs.GetBlob(f.New.Blob)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Path, err)
			}
			if utf8.Valid(b) {
				text := string(b)
				out.Content = &text
				left -= f.New.Size
			}
		}
		all[string(f.Path)] = out
	}
	return all, nil
}
