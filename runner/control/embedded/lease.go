package embedded

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// leaseEvery is how often the tokens of requests that go on are looked at again:
// what a revoked token is still good for lasts no longer.
const leaseEvery = 20 * time.Second

// ErrRevoked is the cause of the end of a request that went on for longer than
// its token was valid.
var ErrRevoked = errors.New("the token is not valid any more")

// leases end the watches and the streams of a token that was revoked, or made
// anew: other requests are over soon by themselves.
type leases struct {
	tokens *Tokens

	mu   sync.Mutex
	open map[*lease]struct{}
}

// lease is a request that goes on.
type lease struct {
	sha256 string
	end    context.CancelCauseFunc
}

func newLeases(t *Tokens) *leases { return &leases{tokens: t, open: map[*lease]struct{}{}} }

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
		defer l.take(&lease{by.sha256, end})()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (l *leases) take(one *lease) (giveBack func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[one] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, one)
	}
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

// check ends what goes on by a token that is none any more. Tokens that cannot
// be read are none: they are worth nothing for a new request, either.
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
