package embedded

import (
	"net"
	"sync"
	"syscall"
)

// mostConnections is how many connections are open at a time, if half of the
// files that the process may have open are not fewer: journals and programs need
// the others. Any user of the machine can connect, whom nothing is told.
const mostConnections = 8192

// connectionLimit is how many connections may be open at a time.
func connectionLimit() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return mostConnections / 8
	}
	return int(min(mostConnections, max(files.Cur/2, 64))) //nolint:gosec // small
}

// limited is a listener with so many connections at a time; more of them wait
// until one is closed, which those that say nothing are soon.
type limited struct {
	net.Listener
	open   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newLimited(l net.Listener, limit int) *limited {
	return &limited{Listener: l, open: make(chan struct{}, limit), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &counted{Conn: c, leave: sync.OnceFunc(func() { <-l.open })}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// counted is a connection of a limited listener.
type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
