package embedded

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	// mostConnections is how many connections are open at a time, unless half of the
	// files that the process may have open are fewer: journals and programs need the
	// others.
	mostConnections = 8192
	// unknownUser is the user of a connection whose other end cannot be found.
	unknownUser = -1
)

// connectionLimit is how many connections may be open at a time.
func connectionLimit() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return mostConnections / 8
	}
	return int(min(mostConnections, max(files.Cur/2, 64))) //nolint:gosec // small
}

// connections is a listener that bounds how many connections are open. Every user
// of the machine can connect, so a process without a token must not be able to
// keep those with a token out:
//
//	connection       places             how long                     when its places are taken
//	without a token  a quarter of all   until the deadline           the oldest of the user with the most is closed
//	with a token     the others, of     as long as the server likes  is refused; see authenticate
//	                 those a quarter
//	                 for one identity
//
// A connection begins without a token and changes with its first request that has
// a valid one. Accept never waits for a place.
type connections struct {
	net.Listener
	strangers, authenticated int
	deadline                 time.Duration
	userOf                   func(net.Conn) int // the user at the other end, or unknownUser

	mu      sync.Mutex
	waiting map[int]*list.List // connections without a token by user, the oldest first
	count   int                // of those
	holders map[string]int     // connections with a token by identity
	held    int                // of those
}

// limitConnections bounds the connections of a listener. One without a token is
// closed after the deadline.
func limitConnections(l net.Listener, limit int, deadline time.Duration, userOf func(net.Conn) int) *connections {
	strangers := max(limit/4, 1)
	return &connections{
		Listener: l, strangers: strangers, authenticated: max(limit-strangers, 1), deadline: deadline, userOf: userOf,
		waiting: map[int]*list.List{}, holders: map[string]int{},
	}
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: inner, of: l, user: l.userOf(inner)}
	if evicted := l.add(c); evicted != nil {
		_ = evicted.Close() // its process notices the end of the connection
	}
	return c, nil
}

// add gives a new connection a place, and returns the connection that is closed
// for it.
func (l *connections) add(c *connection) (evicted *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count >= l.strangers {
		evicted = l.oldest()
		l.remove(evicted)
	}
	of := l.waiting[c.user]
	if of == nil {
		of = list.New()
		l.waiting[c.user] = of
	}
	c.place = of.PushBack(c)
	l.count++
	c.timer = time.AfterFunc(l.deadline, func() { _ = c.Close() })
	return evicted
}

// oldest is the oldest connection of the user with the most connections without a
// token. There is at least one. The mutex is held.
func (l *connections) oldest() *connection {
	var most *list.List
	for _, of := range l.waiting {
		if most == nil || of.Len() > most.Len() {
			most = of
		}
	}
	return most.Front().Value.(*connection) //nolint:forcetypeassert // the list has no other values
}

// remove takes a connection from its place. The mutex is held.
func (l *connections) remove(c *connection) {
	switch {
	case c.place != nil:
		of := l.waiting[c.user]
		of.Remove(c.place)
		if of.Len() == 0 {
			delete(l.waiting, c.user)
		}
		c.place = nil
		l.count--
		c.timer.Stop()
	case c.holds:
		c.holds = false
		l.held--
		if l.holders[c.identity]--; l.holders[c.identity] == 0 {
			delete(l.holders, c.identity)
		}
	}
}

// connection is one that a listener has accepted. The mutex of the listener
// guards its fields.
type connection struct {
	net.Conn
	of       *connections
	user     int
	place    *list.Element // among those without a token, or nil
	timer    *time.Timer   // closes it while it is without a token
	identity string        // whose token it has
	holds    bool          // a place among those with a token
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	c.of.remove(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// authenticate notes that a request of the connection had a valid token, and
// reports whether there is a place for it. The server's own client is not bounded.
func (c *connection) authenticate(identity string, own bool) bool {
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.place == nil { // it has a place already, or is closed
		return true
	}
	if !own && (l.held >= l.authenticated || l.holders[identity] >= max(l.authenticated/4, 1)) {
		return false
	}
	l.remove(c)
	c.identity, c.holds = identity, true
	l.holders[identity]++
	l.held++
	return true
}

type connectionKey struct{}

// withConnection is http.Server.ConnContext: requests know their connection.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// connectionOf is the connection of a request; nil: it came by another listener.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}
