package runapi

import (
	"net/http"
	"sync"
)

const (
	// maxStreams bounds the concurrent streams, and maxEach those of one identity.
	maxStreams = 1000
	maxEach    = 64
)

// limiter bounds the number of concurrent streams.
type limiter struct {
	mu     sync.Mutex
	used   int
	by     map[string]int
	closed bool
	idle   chan struct{} // closed when close was called and the last stream has ended
}

// reserve reserves a stream for an identity.
func (l *limiter) reserve(name string) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, later(http.StatusServiceUnavailable, 1, "the server is stopping")
	case l.by[name] >= maxEach:
		return nil, later(http.StatusTooManyRequests, 5, "%s has %d streams already", name, maxEach)
	case l.used >= maxStreams:
		return nil, later(http.StatusTooManyRequests, 5, "there are %d streams already", maxStreams)
	}
	if l.by == nil {
		l.by = map[string]int{}
	}
	l.used++
	l.by[name]++
	return func() { l.release(name) }, nil
}

func (l *limiter) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used--
	if l.by[name]--; l.by[name] == 0 {
		delete(l.by, name)
	}
	if l.closed && l.used == 0 {
		close(l.idle)
	}
}

// close refuses further streams, and returns a channel that is closed when all have ended.
func (l *limiter) close() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed, l.idle = true, make(chan struct{})
		if l.used == 0 {
			close(l.idle)
		}
	}
	return l.idle
}
