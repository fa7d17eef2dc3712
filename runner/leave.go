package runner

import (
	"context"
	"sync"

	"agentctl.dev/agentctl/api/reason"
)

// leaveOnDemand ends the context it returns when the run is to be left as it
// stands. What the loop makes of that is not written down any more: a call that
// was cut off has no result, and a resume treats it as after a crash.
func (s *session) leaveOnDemand(ctx context.Context) (_ context.Context, stop func()) {
	if s.opts.Leave == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.opts.Leave:
			s.recorder.leave()
			cancel(reason.New(reason.Cancelled, "%w", errLeft))
		case <-done:
		}
	})
	return ctx, func() { close(done); wg.Wait(); cancel(nil) }
}

// leave sees to it that nothing more is written.
func (r *recorder) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
}
