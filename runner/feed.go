package runner

import (
	"context"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/journal"
)

const (
	// feedRoom is how many events wait in memory for a watcher. It can fall
	// further behind: what finds no room is read from the journal later.
	feedRoom = 256
	// feedPatience is how long, at the end of a run, a watcher may stand still
	// before it is given up; feedHurry is the same for a run that was stopped.
	feedPatience = 10 * time.Second
	feedHurry    = time.Second
	// askPatience bounds the wait of a question for the events before it.
	askPatience = 2 * time.Second
)

// feed tells a watcher the events of a run, each once and in order, and never
// lets the run wait for it: a pipe that nobody reads must not stop an agent.
// Events are numbered without gaps, so that a number says what comes next and
// whether it is still in memory.
type feed struct {
	watch func(event.Event)
	tail  *journal.Tail
	// wake holds a token when there may be something to do.
	wake chan struct{}
	// ended is closed when the feed's goroutine is gone.
	ended chan struct{}

	mu    sync.Mutex
	queue []event.Event // the events after taken, or fewer; from head on
	head  int
	// last was offered, taken is being told, told has been told.
	last, taken, told int64
	closing           bool
	waiting           []feedWaiter
}

// feedWaiter waits until an event has been told.
type feedWaiter struct {
	seq  int64
	told chan struct{}
}

// newFeed begins to tell what comes after event last of the journal in dir.
// End it.
func newFeed(dir string, last int64, watch func(event.Event)) *feed {
	f := &feed{
		watch: watch, tail: journal.NewTail(dir), wake: make(chan struct{}, 1), ended: make(chan struct{}),
		last: last, taken: last, told: last,
	}
	go f.run()
	return f
}

// offer takes an event that stands in the journal. Events come in order.
func (f *feed) offer(e event.Event) {
	f.mu.Lock()
	n := len(f.queue) - f.head
	if f.taken+int64(n) == f.last && n < feedRoom { // else it follows one that only the journal has
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

func (f *feed) call() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *feed) run() {
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

// next waits for the event after the one that was told last. There is none when
// the feed is closing and everything was told, or when the journal cannot be
// read: then nothing more is told, for an event that is left out would be worse.
func (f *feed) next() (event.Event, bool) {
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

func (f *feed) pop() event.Event {
	e := f.queue[f.head]
	f.queue[f.head] = event.Event{} // what it holds may be large
	if f.head++; f.head == len(f.queue) {
		f.queue, f.head = f.queue[:0], 0
	}
	return e
}

func (f *feed) done(seq int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = seq
	kept := f.waiting[:0]
	for _, w := range f.waiting {
		if w.seq <= seq {
			close(w.told)
		} else {
			kept = append(kept, w)
		}
	}
	f.waiting = kept
}

// Flush returns when everything that was offered before the call has been told,
// or ctx ends, or the feed does.
func (f *feed) Flush(ctx context.Context) {
	f.mu.Lock()
	if f.told >= f.last {
		f.mu.Unlock()
		return
	}
	w := feedWaiter{f.last, make(chan struct{})}
	f.waiting = append(f.waiting, w)
	f.mu.Unlock()
	select {
	case <-w.told:
	case <-f.ended:
	case <-ctx.Done():
	}
}

// end tells what is left and ends the feed. A watcher that takes nothing for
// feedPatience, for feedHurry once ctx has ended, or until giveUp is closed, is
// given up: its goroutine ends when its call returns, and tells it nothing more.
// It returns the number of events that were not told.
func (f *feed) end(ctx context.Context, giveUp <-chan struct{}) int64 {
	f.mu.Lock()
	f.closing = true
	before := f.told
	f.mu.Unlock()
	f.call()
	patience, stopped := feedPatience, ctx.Done()
	idle := time.NewTimer(patience)
	defer idle.Stop()
	for {
		select {
		case <-f.ended:
			return f.left(false)
		case <-giveUp:
			return f.left(true)
		case <-stopped:
			patience, stopped = feedHurry, nil
		case <-idle.C:
			f.mu.Lock()
			still := f.told == before
			before = f.told
			f.mu.Unlock()
			if still {
				return f.left(true)
			}
		}
		idle.Reset(patience)
	}
}

// left counts what was not told; drop sees to it that it stays so.
func (f *feed) left(drop bool) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.last - f.told
	if drop {
		f.last, f.queue, f.head = f.taken, nil, 0
	}
	return n
}
