package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// client is a connection of a contained program to the proxy.
type client struct {
	net.Conn
	session *session
	// taken is set when the handler owns the connection and the server no longer
	// does. The handler's goroutine writes and reads it.
	taken bool
	// busy is set while a request is forwarded.
	busy atomic.Bool

	last   atomic.Int64 // when a byte passed, in nanoseconds since begin
	begin  time.Time
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	idle    *time.Timer
	current *connection
}

// clientKey finds the client in the context of a request.
type clientKey struct{}

func withClient(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, clientKey{}, conn)
}

func newClient(s *session, conn net.Conn) *client {
	c := &client{Conn: conn, session: s, begin: time.Now(), closed: make(chan struct{})}
	c.mu.Lock() // the timer may fire before it is in its place
	defer c.mu.Unlock()
	c.idle = time.AfterFunc(s.proxy.limits.Idle, c.checkIdle)
	return c
}

func (c *client) touch() { c.last.Store(int64(time.Since(c.begin))) }

// checkIdle closes the client when no data has passed for too long. One timer
// that checks again is cheaper than a deadline with every byte, and it covers
// both directions.
func (c *client) checkIdle() {
	limit := c.session.proxy.limits.Idle
	quiet := time.Since(c.begin) - time.Duration(c.last.Load())
	if quiet < limit {
		c.mu.Lock()
		defer c.mu.Unlock()
		select {
		case <-c.closed:
		default:
			c.idle.Reset(limit - quiet)
		}
		return
	}
	if k := c.carried(); k != nil && c.busy.Load() {
		k.fail(fmt.Errorf("cut: nothing sent or received for %s", limit))
	}
	_ = c.Close()
}

// Read reads what the program sends.
func (c *client) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.touch()
	}
	return n, err
}

// Write sends to the program.
func (c *client) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.touch()
	}
	return n, err
}

// CloseWrite shuts down the sending side.
func (c *client) CloseWrite() error { return closeWrite(c.Conn) }

// lingerTime is what http.Server gives a client to read a last answer.
const lingerTime = 500 * time.Millisecond

// linger lets the program read the answer: closing a socket with unread bytes
// discards the data on the way to the program.
func (c *client) linger() {
	_ = c.CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, io.LimitReader(c, maxHead))
}

// Close ends the connection and what it carries, once.
func (c *client) Close() error {
	var err error
	c.once.Do(func() {
		close(c.closed)
		err = c.Conn.Close()
		c.use(nil)
		c.session.forget(c)
		c.mu.Lock()
		c.idle.Stop()
		c.mu.Unlock()
	})
	return err
}

// use makes k the connection that the client uses, and ends the previous one.
func (c *client) use(k *connection) {
	c.mu.Lock()
	before := c.current
	c.current = k
	gone := false
	select {
	case <-c.closed:
		gone = true
	default:
	}
	c.mu.Unlock()
	if before != nil && before != k {
		before.end()
	}
	if k != nil && gone {
		k.end()
	}
}

// carried returns the connection that the client carries, or nil.
func (c *client) carried() *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}
