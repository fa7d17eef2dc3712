package journal

import (
	"context"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
)

const (
	// watcherRoom is how many events wait in memory for a watcher. It can fall further
	// behind: what finds no room is read from the journal later.
	watcherRoom = 256
	// watcherPatience is how long, at the end of a run, a watcher may take for one event
	// before it is given up; stoppedPatience is the same for a run that was stopped.
	watcherPatience = 10 * time.Second
	stoppedPatience = time.Second
)

// Feed passes the events of a run to a watcher, each once and in order, and never blocks
// the run: a pipe without a reader must not stop an agent. Events are numbered without
// gaps, so that the number of the next event shows whether it is still in memory.
type Feed struct {
	watch func(event.Event)
	tail  *Tail
	// wake holds a token when there may be something to do.
	wake chan struct{}
	// ended is closed when the feed's goroutine is gone.
	ended chan struct{}

	mu    sync.Mutex
	queue []event.Event // the events after taken, or fewer; from head on
	head  int
	// last was offered, taken is being passed to the watcher, passed has been.
	last, taken, passed int64
	closing             bool
	waiting             []waiter
}

// waiter waits until an event has been passed to the watcher.
type waiter struct {
	seq    int64
	passed chan struct{}
}

// NewFeed passes on the events after event last of the journal in dir. The caller must
// call End.
func NewFeed(dir string, last int64, watch func(event.Event)) *Feed {
	f := &Feed{
		watch: watch, tail: NewTail(dir), wake: make(chan struct{}, 1), ended: make(chan struct{}),
		last: last, taken: last, passed: last,
	}
	go f.run()
	return f
}

// Offer takes an event that is in the journal. Events come in order.
func (f *Feed) Offer(e event.Event) {
	f.mu.Lock()
	n := len(f.queue) - f.head
	if f.taken+int64(n) == f.last && n < watcherRoom { // else it follows one that only the journal has
		if len(f.queue) == cap(f.queue) && f.head > 0 {
			f.queue = append(f.queue[:0], f.queue[f.head:]...)
			f.head = 0
		}
		f.queue = append(f.queue, e)
	}
	f.last = e.Seq
	f.mu.Unlock()
	f.call()
}

func (f *Feed) call() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *Feed) run() {
	defer close(f.ended)
	defer f.tail.Close() //nolint:errcheck // nothing was written
	for {
		e, ok := f.next()
		if !ok {
			return
		}
		f.watch(e)
		f.done(e.Seq)
	}
}

// next waits for the event after the last one that the watcher got. There is none when the
// feed is closing and everything was passed on, or when the journal cannot be read: then
// the feed stops, since a missing event would be worse.
func (f *Feed) next() (event.Event, bool) {
	for {
		f.mu.Lock()
		behind, closing := f.taken < f.last, f.closing
		if behind {
			f.taken++
		}
		seq, e, here := f.taken, event.Event{}, f.head < len(f.queue)
		if here {
			e = f.pop()
		}
		f.mu.Unlock()
		switch {
		case here:
			return e, true
		case behind:
			e, err := f.tail.Event(seq)
			return e, err == nil
		case closing:
			return event.Event{}, false
		}
		<-f.wake
	}
}

func (f *Feed) pop() event.Event {
	e := f.queue[f.head]
	f.queue[f.head] = event.Event{} // what it holds may be large
	if f.head++; f.head == len(f.queue) {
		f.queue, f.head = f.queue[:0], 0
	}
	return e
}

func (f *Feed) done(seq int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passed = seq
	kept := f.waiting[:0]
	for _, w := range f.waiting {
		if w.seq <= seq {
			close(w.passed)
		} else {
			kept = append(kept, w)
		}
	}
	f.waiting = kept
}

// Flush returns when the watcher has got everything that was offered before the call, or
// ctx ends, or the feed does.
func (f *Feed) Flush(ctx context.Context) {
	f.mu.Lock()
	if f.passed >= f.last {
		f.mu.Unlock()
		return
	}
	w := waiter{f.last, make(chan struct{})}
	f.waiting = append(f.waiting, w)
	f.mu.Unlock()
	select {
	case <-w.passed:
	case <-f.ended:
	case <-ctx.Done():
	}
}

// End passes on the remaining events and ends the feed. A watcher that takes nothing for
// watcherPatience, for stoppedPatience once ctx has ended, or until giveUp is closed, is
// given up: its goroutine ends when its current call returns. End returns the number of
// events that the watcher did not get.
func (f *Feed) End(ctx context.Context, giveUp <-chan struct{}) int64 {
	f.mu.Lock()
	f.closing = true
	before := f.passed
	f.mu.Unlock()
	f.call()
	still, stopped := watcherPatience, ctx.Done()
	idle := time.NewTimer(still)
	defer idle.Stop()
	for {
		select {
		case <-f.ended:
			return f.left(false)
		case <-giveUp:
			return f.left(true)
		case <-stopped:
			still, stopped = stoppedPatience, nil
		case <-idle.C:
			f.mu.Lock()
			stands := f.passed == before
			before = f.passed
			f.mu.Unlock()
			if stands {
				return f.left(true)
			}
		}
		idle.Reset(still)
	}
}

// left counts the events that the watcher did not get; drop ensures that it gets no more.
func (f *Feed) left(drop bool) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.last - f.passed
	if drop {
		f.last, f.queue, f.head = f.taken, nil, 0
	}
	return n
}
