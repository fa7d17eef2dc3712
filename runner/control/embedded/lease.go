package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// leaseEvery is how often the tokens of long-running requests are checked
// again: no request outlives a revoked token for longer.
const leaseEvery = 20 * time.Second

// leasesEach is how many long-running requests one identity may have at a time.
// A watch that begins with the existing objects takes megabytes where there are
// thousands, and a read-only identity could request any number of them.
const leasesEach = 256

// ErrRevoked is the cause of the end of a request that ran for longer than its
// token was valid.
var ErrRevoked = errors.New("the token is not valid any more")

// leases end the watches and the streams of a token that was revoked or
// rotated. Other requests end soon by themselves.
type leases struct {
	tokens *Tokens

	mu   sync.Mutex
	open map[*lease]struct{}
	each map[string]int // by identity
}

// lease is a long-running request.
type lease struct {
	name   string
	sha256 string
	end    context.CancelCauseFunc
}

func newLeases(t *Tokens) *leases {
	return &leases{tokens: t, open: map[*lease]struct{}{}, each: map[string]int{}}
}

// hold looks after the requests that go on in next.
func (l *leases) hold(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, known := request.RequestInfoFrom(r.Context())
		u, _ := request.UserFrom(r.Context())
		by, ok := u.(*bearer) // the server's own client holds none of the tokens
		if !known || !ok || !longRunning(r, info) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, end := context.WithCancelCause(r.Context())
		defer end(nil)
		giveBack, ok := l.take(&lease{by.GetName(), by.sha256, end})
		if !ok {
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusTooManyRequests, fmt.Sprintf("%d watches and streams of %s go on already", leasesEach, by.GetName()))
			return
		}
		defer giveBack()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// take adds a long-running request, unless its identity has too many.
func (l *leases) take(one *lease) (giveBack func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.each[one.name] >= leasesEach {
		return nil, false
	}
	l.open[one] = struct{}{}
	l.each[one.name]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, one)
		if l.each[one.name]--; l.each[one.name] == 0 {
			delete(l.each, one.name)
		}
	}, true
}

// run looks at the tokens until the context ends.
func (l *leases) run(ctx context.Context) {
	tick := time.NewTicker(leaseEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.check()
		case <-ctx.Done():
			return
		}
	}
}

// check ends the requests whose token is no longer valid. Tokens that cannot be
// read are invalid, as for a new request.
func (l *leases) check() {
	valid, err := l.tokens.known()
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.open {
		if err != nil || valid[one.sha256] == nil {
			one.end(ErrRevoked)
		}
	}
}
