package embedded

import (
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// bodyTimeout is how long a client may take to send the body of a request. The
	// largest is 3 MB, and comes from this machine.
	bodyTimeout = 30 * time.Second
	// bodiesEach is how many unfinished bodies one identity sends at a time. Each
	// holds one of the requests that the API server works on.
	bodiesEach = 64
)

// bodies bounds the bodies of requests, which the server reads for as long as
// their clients send: in time, and in how many an identity sends at once.
type bodies struct {
	timeout time.Duration

	mu   sync.Mutex
	open map[string]int // by identity
}

func newBodies(timeout time.Duration) *bodies {
	return &bodies{timeout: timeout, open: map[string]int{}}
}

// begin sets the deadline of the body of a request. It holds until the body has
// been read to its end, so also for what the server reads and drops after an
// answer. Call end when the request is answered.
func (b *bodies) begin(w http.ResponseWriter, r *http.Request, now time.Time) (_ *body, end func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, func() {}
	}
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(now.Add(b.timeout)) // a writer without a connection has nothing to wait for
	one := &body{ReadCloser: r.Body, of: b, unlimited: func() { _ = c.SetReadDeadline(time.Time{}) }}
	r.Body = one
	return one, one.answered
}

// body is the body of a request.
type body struct {
	io.ReadCloser
	of        *bodies
	unlimited func() // takes the deadline away

	mu    sync.Mutex
	owner string // counted for it, or ""
	over  bool
}

// count counts a body for an identity, and reports whether it may have another.
func (o *body) count(identity string) bool {
	if o == nil {
		return true
	}
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	if o.of.open[identity] >= bodiesEach {
		return false
	}
	o.of.open[identity]++
	o.owner = identity
	return true
}

// Read implements io.Reader.
func (o *body) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err != nil {
		o.finish(err == io.EOF) //nolint:errorlint // a body ends with io.EOF itself
	}
	return n, err
}

// answered notes that the request is answered: from now on the deadline belongs
// to the server.
func (o *body) answered() { o.finish(false) }

func (o *body) finish(whole bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	o.over = true
	if whole {
		o.unlimited()
	}
	if o.owner == "" {
		return
	}
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	if o.of.open[o.owner]--; o.of.open[o.owner] == 0 {
		delete(o.of.open, o.owner)
	}
}
