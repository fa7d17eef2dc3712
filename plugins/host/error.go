package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Kind is the kind of failure of a program.
type Kind string

// The kinds of errors.
const (
	// KindStart: the operating system would not start it.
	KindStart Kind = "Start"
	// KindNotPlugin: it runs, but is not a plugin.
	KindNotPlugin Kind = "NotPlugin"
	// KindVersion: it speaks another version of the protocol.
	KindVersion Kind = "Version"
	// KindHandshake: it is a plugin, but cannot be reached.
	KindHandshake Kind = "Handshake"
	// KindTimeout: it did not answer in time.
	KindTimeout Kind = "Timeout"
	// KindCancelled: the caller gave up while it was being started.
	KindCancelled Kind = "Cancelled"
	// KindCrashed: its process ended while it was needed.
	KindCrashed Kind = "Crashed"
	// KindProtocol: it broke the rules of the protocol.
	KindProtocol Kind = "Protocol"
	// KindTool: a tool reported that it could not be asked.
	KindTool Kind = "Tool"
	// KindClosed: Close was called.
	KindClosed Kind = "Closed"
)

// Error is everything that can go wrong with a program.
type Error struct {
	Kind Kind
	// Plugin is the name given to Start.
	Plugin string
	Err    error
	// Stderr holds the program's last lines there, cleaned for display.
	Stderr []string
}

// Error returns one sentence, and below it what the program wrote to stderr.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin %s: %v", e.Plugin, e.Err)
	if len(e.Stderr) > 0 {
		b.WriteString("; its last words on stderr:")
		for _, l := range e.Stderr {
			b.WriteString("\n  | ")
			b.WriteString(l)
		}
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// startTimeoutError is the cause of a start that took too long.
type startTimeoutError struct{ after time.Duration }

func (e startTimeoutError) Error() string {
	return fmt.Sprintf("it was not ready to be called within %s", e.after)
}

// startError returns why a start failed: the guard knows more than go-plugin.
func (p *Plugin) startError(ctx context.Context, err error) *Error {
	e := &Error{Plugin: p.name}
	p.guard.mu.Lock()
	fault := p.guard.fault
	p.guard.mu.Unlock()
	if status.Code(err) == codes.DeadlineExceeded { // the program's clock may be ahead of our timer
		select {
		case <-ctx.Done():
		case <-p.guard.exited:
		case <-time.After(lastWords):
		}
	}
	late, isLate := errors.AsType[startTimeoutError](context.Cause(ctx))
	switch {
	case fault != nil:
		e.Kind, e.Err = fault.Kind, fault.Err
	case isLate:
		e.Kind, e.Err = KindTimeout, late
	case ctx.Err() != nil:
		e.Kind, e.Err = KindCancelled, fmt.Errorf("cancelled while it was being started: %w", context.Cause(ctx))
	default:
		if other, ok := errors.AsType[*Error](err); ok {
			return &Error{Kind: other.Kind, Plugin: p.name, Err: other.Err}
		}
		e.Kind, e.Err = p.rpcError(err)
	}
	return e
}

// exitText puts the end of a process into words.
func exitText(exit error) string {
	if exit == nil {
		return "exit code 0"
	}
	return excerpt(exit.Error())
}

// callError wraps what went wrong with an RPC.
func (p *Plugin) callError(tool string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.Plugin = p.name
		return e
	}
	kind, err := p.rpcError(err)
	if tool != "" {
		err = fmt.Errorf("tool %q: %w", tool, err)
	}
	e := &Error{Kind: kind, Plugin: p.name, Err: err}
	if kind == KindCrashed {
		e.Stderr = p.stderr.last()
	}
	return e
}

// crashWait is how long the end of a process may lag behind its connection's.
const crashWait = 2 * time.Second

// rpcError translates a gRPC status.
func (p *Plugin) rpcError(err error) (Kind, error) {
	st, _ := status.FromError(err)
	switch st.Code() {
	case codes.Unavailable, codes.Canceled:
		exit := p.guard.ended(crashWait)
		if why := p.guard.killedWhy(); why != "" {
			return KindCrashed, fmt.Errorf("it was killed: %s", why)
		}
		if exit != "" {
			return KindCrashed, fmt.Errorf("its process ended with %s", exit)
		}
		return KindCrashed, errors.New("the connection to it was lost")
	case codes.ResourceExhausted:
		return KindProtocol, fmt.Errorf("a message was too large: %s", excerpt(st.Message()))
	case codes.Unimplemented:
		return KindProtocol, errors.New("it does not speak the tool protocol")
	case codes.DeadlineExceeded:
		return KindTimeout, errors.New("it did not answer in time")
	case codes.Internal, codes.Unknown, codes.FailedPrecondition, codes.InvalidArgument:
		return KindTool, errors.New(longExcerpt(st.Message()))
	}
	return KindProtocol, fmt.Errorf("%s: %s", st.Code(), excerpt(st.Message()))
}

// longExcerpt keeps a tool's own message readable as a whole.
func longExcerpt(s string) string {
	s = clean(s)
	if r := []rune(s); len(r) > 2000 {
		return string(r[:2000]) + "…"
	}
	return s
}
