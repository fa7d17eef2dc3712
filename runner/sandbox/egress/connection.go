package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// connection is the subject of one record: a tunnel, or consecutive requests of
// plain HTTP to the same server.
type connection struct {
	proxy  *Proxy
	client *client
	target Target
	begin  time.Time
	stop   context.CancelFunc

	sent, received atomic.Int64

	// transport carries plain HTTP; it belongs to this connection alone, so that
	// no request of another connection uses the same socket.
	transport *http.Transport

	mu     sync.Mutex
	record event.EgressConnection
	open   map[*upstream]struct{}
	ended  bool
}

// begun returns a connection to the target that pattern allows, and the context
// of its work. The context lasts as long as the connection. The context of a
// request would end when the program has sent everything, though it may still
// read.
func (c *client) begun(ctx context.Context, t Target, pattern Pattern) (*connection, context.Context) {
	p := c.session.proxy
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	k := &connection{proxy: p, client: c, target: t, stop: stop, begin: p.opts.Clock(), open: map[*upstream]struct{}{}, record: p.record(t)}
	k.record.Decision, k.record.Rule = message.Allow, pattern.String()
	return k, ctx
}

// errEnded is the error of a dial for a connection that has been cut meanwhile.
var errEnded = errors.New("the connection has ended")

// dial connects to the target for a request of plain HTTP. The session waits for
// it, even where the request does not.
func (k *connection) dial(ctx context.Context) (net.Conn, error) {
	k.mu.Lock()
	if k.ended {
		k.mu.Unlock()
		return nil, errEnded
	}
	k.client.session.wg.Add(1)
	k.mu.Unlock()
	defer k.client.session.wg.Done()
	conn, to, err := k.proxy.dial(ctx, k.target)
	if err != nil {
		return nil, err
	}
	return k.take(conn, to)
}

// take adds a socket to the connection.
func (k *connection) take(conn net.Conn, to netip.AddrPort) (*upstream, error) {
	u := &upstream{Conn: conn, connection: k}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		_ = conn.Close()
		return nil, errEnded
	}
	k.open[u] = struct{}{}
	k.record.Address = to.String()
	return u, nil
}

// deny turns the record into one of a refusal.
func (k *connection) deny(e *deniedError) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.record.Decision, k.record.Rule = message.Deny, e.rule
}

// fail records why the connection failed or was cut; the first cause counts.
func (k *connection) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.record.Error == "" && k.record.Decision == message.Allow {
		k.record.Error = err.Error()
	}
}

// end closes the sockets and writes the record, once.
func (k *connection) end() {
	k.mu.Lock()
	if k.ended {
		k.mu.Unlock()
		return
	}
	k.ended = true
	sockets := make([]*upstream, 0, len(k.open))
	for u := range k.open {
		sockets = append(sockets, u)
	}
	record := k.record
	k.mu.Unlock()
	k.stop()
	if k.transport != nil {
		k.transport.CloseIdleConnections()
	}
	for _, u := range sockets {
		_ = u.Close()
	}
	record.Sent, record.Received = k.sent.Load(), k.received.Load()
	record.DurationMs = max(0, k.proxy.opts.Clock().Sub(k.begin).Milliseconds())
	k.proxy.opts.OnConnection(record)
}

// count adds n bytes to a direction and reports whether the limits are kept.
func (k *connection) count(direction *atomic.Int64, n int) error {
	if n <= 0 {
		return nil
	}
	k.client.touch()
	direction.Add(int64(n))
	if one := k.sent.Load() + k.received.Load(); one > k.proxy.limits.Bytes {
		return k.over("connection", k.proxy.limits.Bytes)
	}
	if k.proxy.bytes.Add(int64(n)) > k.proxy.limits.TotalBytes {
		return k.over("network", k.proxy.limits.TotalBytes)
	}
	return nil
}

func (k *connection) over(what string, limit int64) error {
	err := fmt.Errorf("cut: more than %d bytes over one %s", limit, what)
	k.fail(err)
	return err
}

// upstream is a socket to a server. It counts what the tool sends and receives.
type upstream struct {
	net.Conn
	connection *connection
	once       sync.Once
}

// Read reads what the server sends.
func (u *upstream) Read(b []byte) (int, error) {
	n, err := u.Conn.Read(b)
	if over := u.connection.count(&u.connection.received, n); over != nil {
		_ = u.Close()
		return 0, over
	}
	return n, err
}

// Write sends to the server.
func (u *upstream) Write(b []byte) (int, error) {
	n, err := u.Conn.Write(b)
	if over := u.connection.count(&u.connection.sent, n); over != nil {
		_ = u.Close()
		return n, over
	}
	return n, err
}

// CloseWrite shuts down the sending side.
func (u *upstream) CloseWrite() error { return closeWrite(u.Conn) }

// Close closes the socket, once.
func (u *upstream) Close() error {
	var err error
	u.once.Do(func() {
		k := u.connection
		k.mu.Lock()
		delete(k.open, u)
		k.mu.Unlock()
		err = u.Conn.Close()
	})
	return err
}

// closeWrite half-closes a connection that supports it, and closes any other:
// the other side waits for an end either way.
func closeWrite(c io.Closer) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
