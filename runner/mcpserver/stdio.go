package mcpserver

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentctl.dev/agentctl/api/reason"
)

const (
	// settleTime is how long the last message may take to become a call.
	settleTime = 100 * time.Millisecond
	// lastTime is how long calls may take whose client has closed its end.
	lastTime = 2 * time.Second
	// pollTime is how often that is looked at.
	pollTime = 10 * time.Millisecond
)

// errClosed is the cause of calls that end because their client has closed the connection.
var errClosed = reason.New(reason.Cancelled, "the client has closed the connection")

// Stdio serves one client until it closes its end, or ctx ends. Nothing else may write
// to out. Calls in progress get a short time to end after the client has closed its end.
func (s *Server) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.rounds.end()
	reading := &reader{ctx: ctx, in: in, last: func() {
		s.drain(ctx)
		cancel(errClosed)
	}}
	session, err := s.protocol.Connect(context.WithValue(ctx, goneKey{}, ctx.Done()), &mcp.IOTransport{
		Reader: reading, Writer: writer{out}, MaxLineLength: mostMessage,
	}, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = session.Close()
		err = <-ended
	}
	if errors.Is(context.Cause(ctx), errClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// drain waits for the calls in progress.
func (s *Server) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastTime)
	defer cancel()
	for wait := settleTime; ; wait = pollTime {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if s.active.Load() == 0 {
			return
		}
	}
}

// reader reads from a client. Reads end with the context.
type reader struct {
	ctx  context.Context //nolint:containedctx // it bounds the reads of one connection
	in   io.Reader
	last func() // called at the end, before it is reported
}

// Read implements io.Reader. A read that is given up ends with the program.
func (r *reader) Read(b []byte) (int, error) {
	type answer struct {
		n   int
		err error
	}
	own := make([]byte, len(b)) // b belongs to the caller again when this returns
	read := make(chan answer, 1)
	go func() {
		n, err := r.in.Read(own)
		read <- answer{n, err}
	}()
	select {
	case a := <-read:
		if a.err != nil && a.n == 0 {
			r.last()
		}
		return copy(b, own[:a.n]), a.err
	case <-r.ctx.Done():
		return 0, io.EOF
	}
}

// Close implements io.Closer.
func (*reader) Close() error { return nil }

type writer struct{ io.Writer }

// Close implements io.Closer: the stream belongs to the caller.
func (writer) Close() error { return nil }
