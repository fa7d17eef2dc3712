package runapi

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// notifier wakes the streams of a run when there may be something new. It passes no
// data: a woken stream reads the journal and the object itself.
type notifier struct {
	mu          sync.Mutex
	subscribers map[client.ObjectKey]map[chan struct{}]struct{}
}

// subscribe returns a channel that holds a token once there is something new.
func (b *notifier) subscribe(run client.ObjectKey) (woken <-chan struct{}, unsubscribe func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subscribers == nil {
		b.subscribers = map[client.ObjectKey]map[chan struct{}]struct{}{}
	}
	if b.subscribers[run] == nil {
		b.subscribers[run] = map[chan struct{}]struct{}{}
	}
	b.subscribers[run][c] = struct{}{}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.subscribers[run], c); len(b.subscribers[run]) == 0 {
			delete(b.subscribers, run)
		}
	}
}

func (b *notifier) notify(run client.ObjectKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.subscribers[run] {
		select {
		case c <- struct{}{}:
		default: // the last wake-up has not been handled yet
		}
	}
}
