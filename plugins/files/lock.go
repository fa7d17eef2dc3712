package files

import (
	"context"
	"sync"
)

// locks gives each file one writer at a time.
type locks struct {
	mu    sync.Mutex
	files map[string]*lock
}

// lock is a lock that can be waited for with a context; users counts the holder and the
// waiters.
type lock struct {
	held  chan struct{}
	users int
}

func newLocks() *locks { return &locks{files: map[string]*lock{}} }

// acquire waits for the file named and returns the function that lets it go.
func (l *locks) acquire(ctx context.Context, name string) (func(), error) {
	l.mu.Lock()
	k := l.files[name]
	if k == nil {
		k = &lock{held: make(chan struct{}, 1)}
		l.files[name] = k
	}
	k.users++
	l.mu.Unlock()
	select {
	case k.held <- struct{}{}:
		return func() { <-k.held; l.leave(name, k) }, nil
	case <-ctx.Done():
		l.leave(name, k)
		return nil, ctx.Err()
	}
}

func (l *locks) leave(name string, k *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.users--; k.users == 0 {
		delete(l.files, name)
	}
}
