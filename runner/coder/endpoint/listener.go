package endpoint

import (
	"net"
	"sync"
)

// listener closes connections beyond those that may be open: each is a file of this process.
type listener struct {
	net.Listener
	open chan struct{}
}

// Accept returns the next connection that there is room for.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.open <- struct{}{}:
			return &connection{Conn: c, closed: sync.OnceFunc(func() { <-l.open })}, nil
		default:
			_ = c.Close() // nothing was sent on it
		}
	}
}

// connection makes room for another one when it is closed.
type connection struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	defer c.closed()
	return c.Conn.Close()
}
