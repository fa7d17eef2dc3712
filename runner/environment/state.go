package environment

import (
	"context"
	"time"

	"agentctl.dev/agentctl/api/event"
)

// stateTime bounds how long the loop guard waits for the state of the workspace.
// Without one a call that may write counts as one that did.
const stateTime = 2 * time.Second

// unknownState is the state of files that could not be looked at in time.
const unknownState = "?"

// State returns an identity of the contents of the workspace, for the detection of a run
// that is stuck.
func (f *Files) State(ctx context.Context, _ string) string {
	ctx, cancel := context.WithTimeout(ctx, stateTime)
	defer cancel()
	state, err := f.files.State(ctx)
	if err != nil {
		return unknownState
	}
	return state
}

// snapshotTime bounds how long a step waits for the record of its files.
const snapshotTime = 10 * time.Second

// Snapshot records the state of the files after a step in which a program has begun, also
// of a run that is being stopped. A run that works on the files of another one leaves that
// to the other one.
func (f *Files) Snapshot(ctx context.Context, step int) {
	if f.lender != nil || f.since == "" {
		return
	}
	began := f.begun.Swap(0)
	if began == 0 { // it was stopped before
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotTime)
	defer cancel()
	e := event.WorkspaceSnapshot{Step: step}
	done, err := f.files.Step(ctx, f.since, time.Unix(0, began))
	switch {
	case err != nil:
		e.Error, f.unknown = err.Error(), true
	case done.Changed == 0 && !f.unknown:
		return
	default:
		f.unknown = false
		e.Snapshot, e.Files, e.Bytes, e.Changed, e.Unkept, e.Kept = done.ID, done.Files, done.Bytes, done.Changed, done.Unkept, done.Kept
		f.since = done.ID
	}
	// A journal that fails ends the run at the next event.
	_, _ = f.o.Journal.Append(event.Event{Part: f.o.NewID("part"), Data: e})
}
