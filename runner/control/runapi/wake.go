package runapi

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bells wake the streams of a run when there may be something new. Nothing is
// handed over: a stream that is woken looks for itself.
type bells struct {
	mu   sync.Mutex
	hung map[client.ObjectKey]map[chan struct{}]struct{}
}

// hang returns a channel that holds a token once there is something new.
func (b *bells) hang(run client.ObjectKey) (rung <-chan struct{}, takeDown func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hung == nil {
		b.hung = map[client.ObjectKey]map[chan struct{}]struct{}{}
	}
	if b.hung[run] == nil {
		b.hung[run] = map[chan struct{}]struct{}{}
	}
	b.hung[run][c] = struct{}{}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.hung[run], c); len(b.hung[run]) == 0 {
			delete(b.hung, run)
		}
	}
}

func (b *bells) ring(run client.ObjectKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.hung[run] {
		select {
		case c <- struct{}{}:
		default: // it has not looked since the last time
		}
	}
}
