package runapi

import (
	"context"
	"errors"
	"time"
)

// pause holds what a waiting stream is woken by.
type pause struct {
	woken <-chan struct{}
	look  *time.Timer
	// looks counts the polls that found nothing.
	looks int
	ping  *time.Timer
}

// rest waits until there may be something new; false reports that the stream has ended
// meanwhile.
func (st *stream) rest(ctx context.Context, p *pause) bool {
	for {
		select {
		case <-p.woken:
			return true
		case <-p.look.C:
			// Nothing wakes a stream for the events of runs below.
			if st.tree == nil && st.s.o.Executes(st.s.o.RunID(st.run, st.attempt)) {
				p.look.Reset(looksIdle * st.s.o.lookEvery)
				return true
			}
			p.look.Reset(st.s.o.lookEvery)
			if p.looks++; st.tree != nil || p.looks%looksIdle == 0 || st.in.Grown() {
				return true
			}
		case <-p.ping.C:
			p.ping.Reset(st.s.o.pingEvery)
			if st.out.ping() != nil {
				return false // the reader is gone
			}
		case <-st.s.stopping:
			if _, done, err := st.turn(ctx); !done { // events from before the stop
				st.drop(errors.Join(errStopping, err), whyLater)
			}
			return false
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				st.drop(cause, whyReader)
			}
			return false
		}
	}
}
