package loop

import (
	"sync"
	"time"

	"agentctl.dev/agentctl/api/reason"
)

// syncDelay is how long results wait for the next intent, whose sync covers them:
// a run whose model answers at once needs one sync a turn. After the delay they are
// made durable while the model is still asked.
const syncDelay = 20 * time.Millisecond

// lateSync is the sync of results. It has a goroutine only while it syncs, and Run
// does not return before that has ended.
type lateSync struct {
	due   *time.Timer // nil when no sync is due; the loop's mutex guards it
	begun sync.WaitGroup
}

// syncSoon makes the recorded events durable with the next intent, or after
// syncDelay if there is none.
func (l *loop) syncSoon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late.due != nil {
		return // of a step without an intent; it comes sooner and covers this one
	}
	l.late.begun.Add(1)
	l.late.due = time.AfterFunc(syncDelay, func() {
		defer l.late.begun.Done()
		l.mu.Lock()
		l.late.due = nil
		l.mu.Unlock()
		_ = l.synced(l.Journal.Sync()) // a journal that has failed ends the loop
	})
}

// takeDue cancels the sync that is due. It reports whether there was one: then the
// caller syncs.
func (l *loop) takeDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late.due == nil || !l.late.due.Stop() {
		return false
	}
	l.late.due = nil
	l.late.begun.Done()
	return true
}

// durable returns when everything recorded so far will survive a crash.
func (l *loop) durable() error {
	l.takeDue()
	return l.synced(l.Journal.Sync())
}

// settle ends what syncSoon has begun, by a sync if one is due. A failure is kept
// in l.broken.
func (l *loop) settle() {
	if l.takeDue() {
		_ = l.synced(l.Journal.Sync())
	}
	l.late.begun.Wait()
}

// synced takes the result of a sync and returns why the run cannot continue, if so.
func (l *loop) synced(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.breakdown(reason.New(reason.Internal, "write the journal: %w", err))
	}
	return l.broken
}
