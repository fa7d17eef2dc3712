package journal

import (
	"context"
	"errors"
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
	// Vouched is the number of the event that head.json names; 0 is none. Only Check sets it.
	Vouched int64
}

// Torn is an incomplete last line.
type Torn struct {
	File   string
	Line   int
	Offset int64
	Bytes  int64
}

// Verify walks the whole hash chain of the run in dir. Damage is a *CorruptError; a torn
// last line is only reported. A chain detects accidents and changes by strangers; its
// owner could write it again, which only a head kept elsewhere would show.
func Verify(ctx context.Context, dir string) (Report, error) {
	return inspect(ctx, dir, func(event.Event) error { return nil })
}

// inspect walks a journal and compares it with its head.
func inspect(ctx context.Context, dir string, visit func(event.Event) error) (Report, error) {
	// The head first: a journal that is written meanwhile only gets longer.
	a, err := readAnchor(dir)
	noHead := errors.Is(err, errNoHead)
	if err != nil && !noHead {
		return Report{}, err
	}
	line := ""
	r, err := scan(ctx, dir, func(e event.Event) error {
		// The hash of line n is known when line n+1 is read, or at the end.
		if e.Seq == a.Seq+1 {
			if line = e.Prev; a.Seq > 0 && line != a.Hash {
				return &CorruptError{File: anchorFile, Problem: fmt.Sprintf("event %d and those after it were changed after they were written", a.Seq)}
			}
		}
		return visit(e)
	})
	if err != nil {
		return r, err
	}
	if noHead {
		return r, atEnd(r.Events, 0, "%v", errNoHead)
	}
	if r.Events == a.Seq {
		line = r.Head
	}
	if err := a.judge(r.Events, line); err != nil {
		return r, err
	}
	r.Anchored = a.Seq > 0 && !a.Open && r.Events == a.Seq && r.Torn == nil
	return r, nil
}
