package journal

import (
	"context"
	"fmt"

	"agentctl.dev/agentctl/api/event"
)

// Report is what a walk over a journal found.
type Report struct {
	// Run as the events name it; "" without events.
	Run string
	// Events that are complete, and the hash of the last one.
	Events int64
	Head   string
	// Files in order.
	Files []string
	// Torn is the incomplete last line that a crash left; Open cuts it off.
	Torn *Torn
	// Anchored is set when the journal was closed in order and its head is
	// vouched for. Without it nothing vouches for the very last line.
	Anchored bool
}

// Torn is an incomplete last line.
type Torn struct {
	File   string
	Line   int
	Offset int64
	Bytes  int64
}

// Verify walks the whole chain of the run in dir. Damage is a *CorruptError; a
// torn last line is only reported. A chain finds accidents and strangers; its
// owner could write it anew, which only a head kept elsewhere would show.
func Verify(ctx context.Context, dir string) (Report, error) {
	return inspect(ctx, dir)
}

// inspect is scan held against the anchor.
func inspect(ctx context.Context, dir string) (Report, error) {
	a, err := readAnchor(dir)
	if err != nil {
		return Report{}, err
	}
	line := ""
	r, err := scan(ctx, dir, func(e event.Event) error {
		// The hash of line n is known when line n+1 is read, or at the end.
		if e.Seq == a.Seq+1 {
			line = e.Prev
		}
		return nil
	})
	if err != nil || a.Seq == 0 {
		return r, err
	}
	if r.Events == a.Seq {
		line = r.Head
	}
	switch {
	case r.Events < a.Seq:
		return r, &CorruptError{File: anchorFile, Problem: fmt.Sprintf("the journal was closed after event %d but ends with event %d", a.Seq, r.Events)}
	case line != a.Hash:
		return r, &CorruptError{File: anchorFile, Problem: fmt.Sprintf("event %d was changed after the journal was closed", a.Seq)}
	}
	r.Anchored = r.Events == a.Seq && r.Torn == nil
	return r, nil
}
