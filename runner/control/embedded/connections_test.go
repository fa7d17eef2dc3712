package embedded

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheLimitOfConnectionsIsKept(t *testing.T) {
	if n := connectionLimit(); n < 64 || n > mostConnections {
		t.Errorf("%d connections", n)
	}
}

// pipes is a listener whose connections are pipes.
type pipes struct{ next chan net.Conn }

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.next
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p *pipes) Close() error { close(p.next); return nil }

func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dialer makes connections of users to a listener.
type dialer struct {
	t    *testing.T
	l    *connections
	next chan net.Conn
	mu   sync.Mutex
	user map[net.Conn]int
}

func newDialer(t *testing.T, limit int, deadline time.Duration) *dialer {
	t.Helper()
	d := &dialer{t: t, next: make(chan net.Conn, 1), user: map[net.Conn]int{}}
	d.l = limitConnections(&pipes{d.next}, limit, deadline, func(c net.Conn) int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.user[c]
	})
	return d
}

// dial connects as a user.
func (d *dialer) dial(user int) *connection {
	d.t.Helper()
	client, server := net.Pipe()
	d.t.Cleanup(func() { client.Close() }) //nolint:errcheck // a pipe
	d.mu.Lock()
	d.user[server] = user
	d.mu.Unlock()
	d.next <- server
	c, err := d.l.Accept()
	if err != nil {
		d.t.Fatal(err)
	}
	return c.(*connection)
}

// open reports whether a connection is open.
func open(c *connection) bool {
	_ = c.SetReadDeadline(time.Unix(1, 0))
	_, err := c.Read(make([]byte, 1))
	ne, ok := err.(net.Error) //nolint:errorlint // of a pipe
	return ok && ne.Timeout()
}

func TestAUserWithoutATokenDoesNotLockOthersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attacker, other = 1, 2
		d := newDialer(t, 64, time.Minute) // 16 places without a token
		known := d.dial(attacker)
		if !known.authenticate("jane", false) {
			t.Fatal("no place for the first one with a token")
		}
		first := d.dial(other)
		var all []*connection
		for range 1000 {
			all = append(all, d.dial(attacker))
		}
		if !open(first) || !open(known) {
			t.Error("connections of others were closed for those of the attacker")
		}
		left := 0
		for i, c := range all {
			if open(c) {
				left++
				if i < len(all)-15 {
					t.Errorf("connection %d is still open", i)
				}
			}
		}
		if left != 15 || d.l.count != 16 {
			t.Errorf("%d connections of the attacker are open, %d are counted without a token", left, d.l.count)
		}
		late := d.dial(other)
		if !late.authenticate("joe", false) || !open(late) {
			t.Error("a late connection has no place")
		}
		_ = late.Close()
		_ = known.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if d.l.count != 0 || d.l.held != 0 || len(d.l.waiting) != 0 || len(d.l.holders) != 0 {
			t.Errorf("after the deadline %d without and %d with a token are counted", d.l.count, d.l.held)
		}
	})
}

func TestAConnectionWithoutATokenEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t, 64, 10*time.Second)
		slow, known := d.dial(1), d.dial(1)
		time.Sleep(9 * time.Second)
		if !known.authenticate("jane", false) || !open(slow) {
			t.Error("closed before the deadline")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if open(slow) || !open(known) {
			t.Errorf("after the deadline: without a token open %v, with one open %v", open(slow), open(known))
		}
		_ = known.Close()
	})
}

func TestAnIdentityHasItsShareOfTheConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t, 64, time.Minute) // 48 places with a token, 12 for one identity
		for i := range 12 {
			if !d.dial(1).authenticate("jane", false) {
				t.Fatalf("connection %d of jane is refused", i)
			}
		}
		more := d.dial(1)
		if more.authenticate("jane", false) || !d.dial(1).authenticate("joe", false) || !d.dial(1).authenticate("jane", true) {
			t.Error("more than the share of one identity, or not that of another or of the server itself")
		}
		if !more.authenticate("joe", false) || !more.authenticate("jane", false) {
			t.Error("a connection that has a place loses it")
		}
		time.Sleep(time.Minute)
	})
}

func TestTheUserOfAConnectionIsKnown(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if got := userOfPeer(server); got != ownUser() {
		t.Errorf("got user %d, want %d", got, ownUser())
	}
	if c := connectionOf(context.Background()); c != nil {
		t.Errorf("a request without a connection has %v", c)
	}
}
