package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// eventsEvery is the interval at which the journal of another process is polled.
const eventsEvery = 50 * time.Millisecond

// EventsOptions select events.
type EventsOptions struct {
	// Ref names the run as View takes it, and State is the folder that holds it.
	Ref, State string
	// From is the number of the first event; 0 is the first there is.
	From int64
	// Follow waits for further events, until the run has ended or no process executes it.
	Follow bool
	// Below is called with the events of the runs below, between those of the run: after
	// the call that has started them and before its result. Nil: they are left out.
	Below func(event.Event) error
}

// Told is the state of a run after its events have been read.
type Told struct {
	// Run is its id, Journal its folder.
	Run, Journal string
	// Phase as in Summary.
	Phase string
	// Finished is its newest end, nil while it runs.
	Finished *event.RunFinished
}

// Events passes the events in the journal of a run to see, which can end that by an error.
// Events that a running process adds follow within a tenth of a second. A journal that was
// cut at its end is an error after the last event.
func Events(ctx context.Context, o EventsOptions, see func(event.Event) error) (*Told, error) {
	found, err := journal.FindRun(o.State, o.Ref)
	if err != nil {
		return nil, &reason.UsageError{Err: err}
	}
	in := journal.Follow(found.Dir)
	defer in.Close() //nolint:errcheck // nothing was written
	t := &Told{Run: found.ID, Journal: found.Dir}
	read, damaged := func() error { return t.read(in, o.From, see) }, func() error { return nil }
	if o.Below != nil {
		tree := NewTreeEvents(o.State, found.ID, o.Follow, in)
		defer tree.Close()
		shown := false
		read, damaged = func() error { return t.readTree(tree, o, &shown, see) }, tree.Damaged
	}
	tick := time.NewTicker(eventsEvery)
	defer tick.Stop()
	for {
		// A process writes before it releases its lock.
		held := journal.Held(found.Dir)
		if err := read(); err != nil {
			return nil, err
		}
		if t.stand(held); !o.Follow || t.Phase != view.Running {
			if !held {
				if err := in.Ended(); err != nil {
					return nil, unread(t.Run, &view.Run{Finished: t.Finished, Phase: t.Phase}, err)
				}
			}
			return t, damaged()
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// read passes on the new events.
func (t *Told) read(in *journal.Follower, from int64, see func(event.Event) error) error {
	for {
		e, err := in.Event()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("run %s: %w", t.Run, err)
		}
		t.note(e)
		if e.Seq < from {
			continue
		}
		if err := see(e); err != nil {
			return err
		}
	}
}

// readTree is read for a run and the runs below it. What these did before the first event
// that is wanted is left out; shown reports that it was reached.
func (t *Told) readTree(tree *TreeEvents, o EventsOptions, shown *bool, see func(event.Event) error) error {
	for {
		e, err := tree.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		pass := see
		if e.Below {
			pass = o.Below
		} else {
			t.note(e.Event)
			*shown = e.Seq >= o.From
		}
		if !*shown {
			continue
		}
		if err := pass(e.Event); err != nil {
			return err
		}
	}
}

// note keeps what an event says about the end of the run.
func (t *Told) note(e event.Event) {
	switch d := e.Data.(type) {
	case event.RunFinished:
		t.Finished = &d
	case event.RunResumed:
		t.Finished = nil
	}
}

func (t *Told) stand(held bool) {
	switch {
	case t.Finished != nil && (t.Finished.Phase != view.Suspended || !held):
		t.Phase = t.Finished.Phase
	case held:
		t.Phase = view.Running
	default:
		t.Phase = Interrupted
	}
}
