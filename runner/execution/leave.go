package execution

import (
	"context"
	"sync"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// LeaveOnDemand returns a context that ends when the run is to be left as it is. What the
// loop makes of that is not recorded any more: a call that was cut off has no result,
// and a resume treats it as after a crash. Both channels may be nil.
func (r *Recorder) LeaveOnDemand(ctx context.Context, leave, drain <-chan struct{}) (_ context.Context, stop func()) {
	if leave == nil && drain == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-leave:
			r.leave()
		case <-drain:
			select {
			case <-r.drain():
			case <-leave: // it took too long
				r.leave()
			case <-done:
				return
			}
		case <-done:
			return
		}
		cancel(reason.New(reason.Cancelled, "%w", errLeft))
	})
	return ctx, func() { close(done); wg.Wait(); cancel(nil) }
}

// drain leaves the run before it begins anything further, and as soon as it only waits
// for a person. The channel is closed then.
func (r *Recorder) drain() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drained = make(chan struct{})
	r.leaveIfWaiting()
	return r.drained
}

// leaveIfWaiting leaves a run that is drained and only waits for a person: the answer
// may take days. The mutex is held.
func (r *Recorder) leaveIfWaiting() {
	if r.drained != nil && !r.left && len(r.view.PendingApprovals) > 0 && !r.busy() {
		r.left = true
		close(r.drained)
	}
}

// begins reports whether an event begins something that would be cut off.
func begins(p event.Payload) bool {
	switch p.(type) {
	case event.StepStart, event.ModelRequest, event.ToolCall, event.ApprovalRequested:
		return true
	}
	return false
}

// busy reports whether a call is in progress. A call that asks a person a question
// only waits. The mutex is held.
func (r *Recorder) busy() bool {
	for _, m := range r.view.Messages {
		for _, c := range m.Calls() {
			if c.State == message.StateRunning && r.view.Inquiry(c.CallID) == nil {
				return true
			}
		}
	}
	return false
}

// leave ensures that nothing more is written.
func (r *Recorder) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
}
