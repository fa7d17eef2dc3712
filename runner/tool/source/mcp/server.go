package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/tool"
)

// dialer connects to a server.
type dialer func(ctx context.Context) (*link, error)

// Bounds of a connection.
const (
	// connectTime bounds the start of a server and its answer to the first request: npx
	// may load a package first.
	connectTime = time.Minute
	// maxStarts is the first start and two more after a server has ended by itself.
	maxStarts = 3
)

// server keeps one connection to a server: it is opened in the background, shared by the
// calls of all its functions, and opened again when the server has ended.
type server struct {
	source *source
	tool   string
	dial   dialer

	mu      sync.Mutex
	current *attempt
	starts  int
	ended   bool
}

// attempt is one connection, or the error with which it was not opened.
type attempt struct {
	ready  chan struct{}
	cancel context.CancelFunc
	link   *link
	err    error
}

// start begins to connect unless a connection is open.
func (s *server) start(ctx context.Context) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		return s.current
	}
	a := &attempt{ready: make(chan struct{})}
	if s.ended {
		a.err = errEnded
		close(a.ready)
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	a.cancel = cancel
	s.current = a
	s.starts++
	again := s.starts - 1
	go func() { // end waits for it
		defer close(a.ready)
		defer cancel()
		if again > 0 {
			select {
			case <-s.source.pool.Options().After(tool.BackOff(again)):
			case <-ctx.Done():
				a.err = context.Cause(ctx)
				return
			}
		}
		a.link, a.err = s.dial(ctx)
	}()
	return a
}

// ready returns the open connection. A server that has ended is started again, unless it
// has ended too often.
func (s *server) ready(ctx context.Context) (*link, error) {
	for {
		a := s.start(context.WithoutCancel(ctx))
		select {
		case <-a.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if a.err != nil {
			s.forget(a)
			return nil, a.err
		}
		gone := a.link.gone()
		if gone == nil {
			return a.link, nil
		}
		if !s.forget(a) {
			return nil, reason.New(reason.ToolError, "tool %q: its MCP server ended %d times: %w", s.tool, maxStarts, gone)
		}
	}
}

// forget drops a connection whose server has ended, so that the next call opens another.
func (s *server) forget(a *attempt) bool {
	if a.link != nil {
		a.link.close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.starts >= maxStarts {
		return false
	}
	if s.current == a {
		s.current = nil
	}
	return true
}

// end closes the connection and waits for it.
func (s *server) end() {
	s.mu.Lock()
	s.ended = true
	a := s.current
	s.mu.Unlock()
	if a == nil {
		return
	}
	if a.cancel != nil {
		a.cancel()
	}
	<-a.ready
	if a.link != nil {
		a.link.close()
	}
}

// shared answers calls by the connection that all calls share.
type shared struct {
	server *server
	link   *link
}

// Call implements tool.Server.
func (s *shared) Call(ctx context.Context, req host.CallRequest, progress func(string)) (tool.Reply, error) {
	return s.link.call(ctx, req, progress)
}

// single answers a call by a server of its own.
type single struct {
	source *source
	tool   *tool.Definition
	dial   dialer
}

// Call implements tool.Server.
func (s *single) Call(ctx context.Context, req host.CallRequest, progress func(string)) (tool.Reply, error) {
	s.source.once.Add(1)
	defer s.source.once.Done()
	connecting, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	l, err := s.dial(connecting)
	if err != nil {
		return tool.Reply{}, tool.NotStarted(err)
	}
	defer l.close()
	if err := l.unchanged(ctx, s.tool); err != nil {
		return tool.Reply{}, err
	}
	return l.call(ctx, req, progress)
}

// call asks the server. A server that ends during a call makes it an error result: its
// effect is unknown, and it is never repeated without an approval.
func (l *link) call(ctx context.Context, req host.CallRequest, progress func(string)) (tool.Reply, error) {
	limited, cancel := context.WithTimeoutCause(ctx, req.Timeout, errTimeout)
	defer cancel()
	result, err := l.ask(limited, req, progress)
	switch {
	case err == nil:
		return reply(l.name, result), nil
	case ctx.Err() != nil:
		return tool.Reply{}, err
	case errors.Is(context.Cause(limited), errTimeout):
		return tool.Reply{Output: "the server did not answer in time; what the call did until then may or may not have happened", Failed: true, Code: message.CodeTimeout, Writes: true}, nil
	case reason.Of(err) == reason.CredentialRejected, reason.Of(err) == reason.CredentialMissing:
		return tool.Reply{}, err
	case l.broken(err):
		return tool.Reply{
			Output: fmt.Sprintf("the MCP server ended during the call: %v; what the call did until then may or may not have happened", l.gone()),
			Failed: true, Code: message.CodeTool, Writes: true,
		}, nil
	}
	return tool.Reply{Output: "the MCP server refused the call: " + cleanLines(trimmed(err)), Failed: true, Code: message.CodeTool, Writes: true}, nil
}

var errTimeout = errors.New("the server did not answer in time")

// trimmed is what a server says about a call, without the words of the library.
func trimmed(err error) string {
	text := err.Error()
	if _, rest, ok := strings.Cut(text, `calling "tools/call": `); ok {
		text = rest
	}
	return text
}
