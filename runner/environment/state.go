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

// Snapshot records the state of the files after a step. A run that works on the files of
// another one leaves that to the other one.
func (f *Files) Snapshot(ctx context.Context, step int) {
	if f.lender != nil || f.since == "" {
		return
	}
	began := time.Unix(0, f.begun.Swap(0))
	ctx, cancel := context.WithTimeout(ctx, snapshotTime)
	defer cancel()
	e := event.WorkspaceSnapshot{Step: step}
	done, err := f.files.Step(ctx, f.since, began)
	switch {
	case err != nil:
		e.Error = err.Error()
	case done == nil:
		return // nothing has changed
	default:
		e.Snapshot, e.Files, e.Bytes, e.Changed, e.Unkept, e.Kept = done.ID, done.Files, done.Bytes, done.Changed, done.Unkept, done.Kept
		f.since = done.ID
	}
	// A journal that fails ends the run at the next event.
	_, _ = f.o.Journal.Append(event.Event{Part: f.o.NewID("part"), Data: e})
}
