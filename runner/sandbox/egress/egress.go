// Package egress decides which servers a contained program may reach, and carries its bytes there.
//
// A contained program has an empty network with one listener in it. Outside, a
// Proxy serves the listener: it validates HTTP requests in absolute form and
// CONNECT tunnels against an Allow list. It alone resolves names, and it dials
// the very address that was checked.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Options are the settings of a Proxy.
type Options struct {
	// Tools share the network that is served; they are named in refusals and records.
	Tools []string
	// Allow lists what may be reached, as ParseAllow reads it. Empty is nothing.
	Allow []string
	// Resolver looks names up; nil is the host's own.
	Resolver Resolver
	// Dial connects to an address that has been checked; nil is the host's network.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// Clock measures durations; nil is time.Now.
	Clock func() time.Time
	// Limits of the traffic; what is 0 has the value of DefaultLimits.
	Limits Limits
	// OnConnection is called with each connection when it has ended, refused
	// ones too, from several goroutines at once and never after Serve has
	// returned. Optional.
	OnConnection func(event.EgressConnection)
}

// Proxy is an HTTP proxy that reaches what its list allows.
type Proxy struct {
	opts   Options
	allow  Allow
	limits Limits

	accepted atomic.Int64 // connections taken so far
	bytes    atomic.Int64 // carried so far, both ways
}

// New returns a Proxy. The only error is an entry of Allow that ParseAllow refuses.
func New(o Options) (*Proxy, error) {
	allow, err := ParseAllow(o.Allow)
	if err != nil {
		return nil, fmt.Errorf("proxy of %s: %w", names(o.Tools), err)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.OnConnection == nil {
		o.OnConnection = func(event.EgressConnection) {}
	}
	if o.Resolver == nil {
		o.Resolver = hostResolver{}
	}
	return &Proxy{opts: o, allow: allow, limits: o.Limits.orDefault()}, nil
}

// Serve serves what the listener accepts, until the listener or ctx ends. It
// closes the listener, cuts what is still open and waits for it.
//
//	what ended            error
//	ctx                   nil
//	the listener, closed  nil
//	the listener, broken  its error
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{proxy: p, open: map[*client]struct{}{}}
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: p.limits.Header,
		IdleTimeout:       p.limits.Idle,
		MaxHeaderBytes:    maxHead,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withClient,
		ConnState:         s.state,
		ErrorLog:          quiet, // what matters is in the records
		// A client that speaks HTTP/2 to a proxy does so inside a tunnel.
		Protocols: new(http.Protocols),
		// OPTIONS * is answered by the server itself otherwise.
		DisableGeneralOptionsHandler: true,
	}
	server.Protocols.SetHTTP1(true)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	err := server.Serve(&listener{Listener: l, session: s})
	stop()
	_ = server.Close()
	cancel()
	s.close()
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("proxy of %s: %w", names(p.opts.Tools), err)
}

// quiet is the log of a server whose clients cause every line in it.
var quiet = log.New(io.Discard, "", 0)

// session is one call of Serve.
type session struct {
	proxy *Proxy
	wg    sync.WaitGroup

	mu     sync.Mutex
	open   map[*client]struct{}
	closed bool
	told   bool
}

// listener makes clients of connections and refuses those over the limit.
type listener struct {
	net.Listener
	session *session
}

// Accept returns the next connection within the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, refusal := l.session.admit(conn)
		if refusal == "" {
			return c, nil
		}
		// Some bytes always fit into the buffer of a new connection.
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(refusal), refusal)
		_ = conn.Close()
	}
}

// admit counts a connection, or returns why there is no room for it. That all
// connections have been used up is recorded once; otherwise a flood would fill
// the journal.
func (s *session) admit(conn net.Conn) (*client, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limits := &s.proxy.limits
	if s.closed || len(s.open) >= limits.Connections {
		return nil, fmt.Sprintf("NetworkDenied: %s has %d connections open, which is the limit\n", names(s.proxy.opts.Tools), len(s.open))
	}
	if refusal := s.spend(); refusal != "" {
		return nil, refusal
	}
	c := newClient(s, conn)
	s.open[c] = struct{}{}
	return c, ""
}

// spent counts one more connection, or reports that all have been used up.
func (s *session) spent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spend()
}

func (s *session) spend() string {
	limit := s.proxy.limits.Total
	if s.proxy.accepted.Add(1) <= int64(limit) {
		return ""
	}
	refusal := fmt.Sprintf("limit of %d connections", limit)
	if !s.told {
		s.told = true
		s.proxy.opts.OnConnection(event.EgressConnection{Tools: s.proxy.opts.Tools, Decision: message.Deny, Rule: refusal})
	}
	return fmt.Sprintf("NetworkDenied: %s has used up its %s\n", names(s.proxy.opts.Tools), refusal)
}

// state keeps count of the server's goroutines: one for each connection from
// StateNew to StateClosed, or to the end of the handler that has taken it over.
func (s *session) state(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.wg.Add(1)
	case http.StateClosed:
		s.wg.Done()
	case http.StateHijacked:
		conn.(*client).taken = true //nolint:forcetypeassert // this listener returns no others
	case http.StateActive, http.StateIdle:
	}
}

// close cuts what is open and waits for it.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	clients := make([]*client, 0, len(s.open))
	for c := range s.open {
		clients = append(clients, c)
	}
	s.mu.Unlock()
	for _, c := range clients {
		_ = c.Close()
	}
	s.wg.Wait()
}

func (s *session) forget(c *client) {
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
}
