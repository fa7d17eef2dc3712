package embedded

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// activity notices when no client has used the server for some time. A watch is
// use for as long as it lasts; requests of the server's own client do not
// count.
type activity struct {
	after time.Duration // 0: never idle
	busy  func() bool
	idle  chan struct{}

	mu     sync.Mutex
	active int
	timer  *time.Timer
}

func newActivity(after time.Duration, busy func() bool) *activity {
	if busy == nil {
		busy = func() bool { return false }
	}
	return &activity{after: after, busy: busy, idle: make(chan struct{})}
}

// start begins to wait for the first request.
func (a *activity) start() {
	if a.after <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer = time.AfterFunc(a.after, a.rest)
}

// stop ends the waiting.
func (a *activity) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
}

// rest is called when the time is over without a request.
func (a *activity) rest() {
	busy := a.busy() // may ask the server, so not under the lock
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.active > 0: // the end of that request sets the timer
	case busy:
		a.timer.Reset(a.after)
	default:
		select {
		case <-a.idle:
		default:
			close(a.idle)
		}
	}
}

// unused reports whether no client has a long-running request.
func (a *activity) unused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.active == 0
}

func (a *activity) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active++
	if a.timer != nil {
		a.timer.Stop()
	}
}

func (a *activity) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active--; a.active == 0 && a.timer != nil {
		a.timer.Reset(a.after)
	}
}

// watch counts the requests of others that reach next.
func (a *activity) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, ok := request.UserFrom(r.Context()); !ok || u.GetName() != user.APIServerUser {
			a.begin()
			defer a.end()
		}
		next.ServeHTTP(w, r)
	})
}
