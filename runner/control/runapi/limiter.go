package runapi

import (
	"net/http"
	"sync"
)

const (
	// maxStreams bounds the streams at a time, and maxEach those of one identity.
	maxStreams = 1000
	maxEach    = 64
)

// seats are the streams that there can be at a time.
type seats struct {
	mu     sync.Mutex
	taken  int
	by     map[string]int
	closed bool
	free   chan struct{} // closed when the last stream has ended after close
}

// take reserves a stream for an identity.
func (s *seats) take(name string) (giveBack func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, later(http.StatusServiceUnavailable, 1, "the server is stopping")
	case s.by[name] >= maxEach:
		return nil, later(http.StatusTooManyRequests, 5, "%s has %d streams already", name, maxEach)
	case s.taken >= maxStreams:
		return nil, later(http.StatusTooManyRequests, 5, "there are %d streams already", maxStreams)
	}
	if s.by == nil {
		s.by = map[string]int{}
	}
	s.taken++
	s.by[name]++
	return func() { s.giveBack(name) }, nil
}

func (s *seats) giveBack(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.by[name]--; s.by[name] == 0 {
		delete(s.by, name)
	}
	if s.closed && s.taken == 0 {
		close(s.free)
	}
}

// close gives no more, and returns what is closed when all are given back.
func (s *seats) close() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed, s.free = true, make(chan struct{})
		if s.taken == 0 {
			close(s.free)
		}
	}
	return s.free
}
