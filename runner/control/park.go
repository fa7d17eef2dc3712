package control

import (
	"context"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// A run that waits for a person does nothing, so its place is given to another: otherwise
// as many waiting runs as the limit would block all others for hours. A number of waiting
// runs stay in memory, where an answer reaches them at once. Beyond that number, those
// that have waited longest are parked: their programs end and their journals are closed. A
// worker continues a parked run from its journal when there is an answer, when its
// question expires, or when it is cancelled.

// restingFactor bounds how many runs may wait for a person in memory, as a multiple
// of the limit, and mostResting is how many may wait in any case: each holds memory,
// programs and descriptors.
const (
	restingFactor = 4
	mostResting   = 256
)

// restKind is what a run waits for.
type restKind int

const (
	// restNone: it does not wait for a person.
	restNone restKind = iota
	// restCall: a call of it runs, or asks a question. It cannot be parked, because the
	// program would have to end.
	restCall
	// restApproval: it waits for approvals alone.
	restApproval
)

// restOf is what a run waits for. A question without a deadline is answered at once,
// by what the agent declares.
func restOf(v *view.Run) restKind {
	r := restNone
	for _, call := range v.PendingApprovals {
		if in := v.Inquiry(call); in != nil {
			if in.ExpiresAt > 0 {
				return restCall
			}
		} else if q := v.Question(call); q != nil && q.ExpiresAt > 0 {
			r = restApproval
		}
	}
	if r == restApproval && runsCall(v) {
		return restCall
	}
	return r
}

func runsCall(v *view.Run) bool {
	return slices.ContainsFunc(v.Messages, func(m *message.Message) bool {
		return slices.ContainsFunc(m.Calls(), func(c *message.ToolPart) bool { return c.State == message.StateRunning })
	})
}

// rest notes what a run waits for.
func (w *Workers) rest(i *item, r restKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restLocked(i, r)
	w.dispatch()
}

func (w *Workers) restLocked(i *item, r restKind) {
	before := i.resting
	i.resting = r
	switch {
	case (before == restNone) == (r == restNone):
	case r == restNone:
		w.resting = slices.DeleteFunc(w.resting, func(other *item) bool { return other == i })
	default:
		w.resting = append(w.resting, i)
	}
	w.park()
}

// mostInMemory is how many runs may wait for people in memory.
func (w *Workers) mostInMemory() int {
	if w.keep > 0 {
		return w.keep
	}
	return max(restingFactor*w.o.Limit, mostResting)
}

// park asks those that have waited longest to be parked, of which there are too many
// in memory. The mutex is held.
func (w *Workers) park() {
	over := len(w.resting) - w.mostInMemory()
	for _, i := range w.resting {
		if over <= 0 {
			return
		}
		if i.resting == restApproval {
			i.drainNow()
			over--
		} else if i.drained() {
			over--
		}
	}
}

// parked keeps a run that was left because it waits. The mutex is held.
func (w *Workers) parked(i *item) {
	now := w.o.Now()
	i.mu.Lock()
	status := project(i.view, journal.Dir(w.o.State, i.work.ID), "")
	pending, until := len(i.view.PendingApprovals), deadlineOf(i.view)
	i.view, i.status, i.progress = nil, &status, Living
	i.mu.Unlock()
	i.work.Documents, i.work.Pins = nil, nil // its journal has them
	i.taken, i.parked, i.drain = false, true, make(chan struct{})
	w.asleep++
	if pending == 0 || i.ctx.Err() != nil || w.answered(i) { // meanwhile
		w.wake(i)
		return
	}
	if !until.IsZero() {
		i.alarm = time.AfterFunc(until.Sub(now), func() { w.wakeUp(i) })
	}
	w.patrol()
}

// deadlineOf is when the first question of a run is over; zero is never.
func deadlineOf(v *view.Run) (first time.Time) {
	for _, call := range v.PendingApprovals {
		if q := v.Question(call); q != nil && q.ExpiresAt > 0 {
			if at := time.UnixMilli(q.ExpiresAt); first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	return first
}

// wakeUp continues a run if it is parked.
func (w *Workers) wakeUp(i *item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake(i)
	w.dispatch()
}

// wake puts a parked run in front of those that have not begun. The mutex is held.
func (w *Workers) wake(i *item) {
	if !i.parked || w.stopped {
		return
	}
	w.unpark(i)
	w.woken = append(w.woken, i)
}

// unpark has a run parked no more. The mutex is held.
func (w *Workers) unpark(i *item) {
	i.parked = false
	w.asleep--
	if i.alarm != nil {
		i.alarm.Stop()
		i.alarm = nil
	}
}

// answered reports whether an answer lies in the inbox of a run that waits.
func (w *Workers) answered(i *item) bool {
	left, err := runs.AnswerLeft(context.Background(), w.o.State, i.work.ID)
	return err != nil || left // the worker that continues the run reports the error
}

// patrol looks into the inboxes of parked runs: an answer that is left there by
// another program is announced by nothing. The mutex is held.
func (w *Workers) patrol() {
	if w.look != nil || w.asleep == 0 || w.stopped {
		return
	}
	w.look = time.AfterFunc(answeredEvery, func() {
		w.mu.Lock()
		var parked []*item
		for _, i := range w.items {
			if i.parked {
				parked = append(parked, i)
			}
		}
		w.mu.Unlock()
		parked = slices.DeleteFunc(parked, func(i *item) bool { return !w.answered(i) })
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, i := range parked {
			w.wake(i)
		}
		w.look = nil
		w.patrol()
		w.dispatch()
	})
}
