package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
)

const (
	// maxEvent bounds one event. Pieces are small; whole calls are the largest
	// thing that is ever sent at once.
	maxEvent = 8 << 20
	readSize = 32 << 10
	// afterFinish is how long a server may take to send the rest when the answer itself is
	// complete: the usage and a last event. An event that adds to the answer starts that
	// time again.
	afterFinish = 5 * time.Second
	// afterLast is how long to wait for the end of the body, which lets the
	// connection be used again.
	afterLast = 50 * time.Millisecond
)

// readers are the buffers with which answers are read. A conversation has none while the
// model is silent, so that waiting conversations share a few.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readSize) }}

// errCut is a stream that ended before the answer did.
var errCut = errors.New("the stream ended before the answer was complete")

// Answer gathers one answer in a wire format. It passes deltas to the function that it was
// made with.
//
// An error of Event or Whole that is a *model.Error is returned as it is; any other means
// that the bytes are not of this format.
type Answer interface {
	// Event adds one event of the stream, with its name and its data.
	Event(name string, data []byte) error
	// Whole adds an answer that came in one piece instead of a stream.
	Whole(data []byte) error
	// Complete reports whether the answer itself is there: only counts may be missing.
	Complete() bool
	// Over reports whether there is nothing more to read.
	Over() bool
	// Output returns the complete answer.
	Output() *message.Output
	// Pieces counts what the model has said so far. What leaves it as it is only
	// keeps the connection open.
	Pieces() int
}

// Knower is an Answer that skips unknown events, and can report whether it has known any:
// a stream of another API's events is not a stream that was cut, and asking again would
// not help.
type Knower interface {
	Known() bool
}

// Worker is an Answer that can say whether the server has announced something that
// it does not send in pieces: a hidden thought, a tool of its own, the arguments of
// a call.
type Worker interface {
	Busy() bool
}

// stream reads the answer to one attempt.
type stream struct {
	answer Answer
	stall  *model.Stall
	emit   func(message.Delta) error
	// idle bounds the silence inside the answer.
	idle   time.Duration
	speaks string
	// stopped is what emit returned.
	stopped error
	// grown: the answer has become longer since it was checked.
	grown bool
}

func (s *stream) pass(d message.Delta) {
	s.grown = s.grown || d.Text != ""
	if s.stopped == nil {
		s.stopped = s.emit(d)
	}
}

// read reads the whole answer of a 200.
func (s *stream) read(ctx context.Context, resp *http.Response) error {
	br := readers.Get().(*bufio.Reader)
	br.Reset(s.stall.Reader(resp.Body))
	defer func() {
		br.Reset(nil) // the body goes with its answer
		readers.Put(br)
	}()
	first, err := firstByte(br)
	if err != nil {
		return readError(ctx, err, resp, first == 0)
	}
	switch first {
	case '<':
		start, _ := br.Peek(min(br.Buffered(), 200))
		return Garbage("the server answered 200 with a page, not with events: %s", model.Quote(start))
	case '{', '[':
		return s.whole(ctx, br, resp)
	}
	return s.events(ctx, br)
}

// firstByte skips space and a byte order mark, and peeks.
func firstByte(br *bufio.Reader) (byte, error) {
	for {
		b, err := br.Peek(1)
		if err != nil {
			return 0, err
		}
		if !bytes.Contains([]byte(" \t\r\n\xef\xbb\xbf"), b) {
			return b[0], nil
		}
		if _, err := br.Discard(1); err != nil {
			return 0, err
		}
	}
}

func (s *stream) events(ctx context.Context, br *bufio.Reader) error {
	r := newSSEReader(br, maxEvent)
	finished := false
	var first []byte // of the events, for an error
	for n := 0; ; n++ {
		e, err := r.Next()
		if errors.Is(err, io.EOF) && n == 0 && r.Junk() != nil {
			return Garbage("the server answered 200 with something that is no stream of events: %s", model.Quote(r.Junk()))
		}
		if err != nil && s.answer.Complete() && !errors.Is(err, errTooLong) {
			// The answer is complete; only the usage or the last word is missing.
			return nil
		}
		if k, ok := s.answer.(Knower); ok && errors.Is(err, io.EOF) && n > 0 && !k.Known() {
			return Garbage("the server sent events that are none of this API: %s", model.Quote(first))
		}
		if err != nil {
			return readError(ctx, err, nil, false)
		}
		if n == 0 {
			first = bytes.Clone(e.Data[:min(len(e.Data), 500)])
		}
		if err := s.event(e); err != nil {
			return err
		}
		if s.answer.Over() {
			s.drain(br)
			return nil
		}
		if s.answer.Complete() && (!finished || s.grown) {
			finished, s.grown = true, false
			s.stall.Within(min(afterFinish, s.idle))
		}
	}
}

// event adds one event. A piece that was cut is the stream's fault, a whole one
// that cannot be read is the server's.
func (s *stream) event(e sseEvent) error {
	complete, pieces := s.answer.Complete(), s.answer.Pieces()
	err := s.answer.Event(e.Name, e.Data)
	if s.answer.Pieces() != pieces {
		w, ok := s.answer.(Worker)
		s.stall.Progress(ok && w.Busy())
	}
	failed, known := errors.AsType[*model.Error](err)
	switch {
	case s.stopped != nil:
		return s.stopped
	case known:
		return failed
	case err != nil && e.Cut && complete:
		return nil
	case err != nil && e.Cut:
		return cut(errCut)
	case err != nil:
		return Garbage("the server sent an event that is no %s: %w: %s", s.speaks, err, model.Quote(e.Data))
	}
	return nil
}

// whole reads a body that is one JSON value: an answer that was not streamed,
// or an error under status 200.
func (s *stream) whole(ctx context.Context, br *bufio.Reader, resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(&spoken{br, s.stall}, maxEvent+1))
	if err != nil {
		return readError(ctx, err, resp, false)
	}
	if len(body) > maxEvent {
		return readError(ctx, errTooLong, resp, false)
	}
	err = s.answer.Whole(body)
	failed, known := errors.AsType[*model.Error](err)
	switch {
	case s.stopped != nil:
		return s.stopped
	case known:
		return failed
	case err != nil:
		return Garbage("the server answered 200 with something that is no %s: %w: %s", s.speaks, err, model.Quote(body))
	case !s.answer.Complete():
		return Garbage("the server answered 200 with JSON that holds no answer, or one without a finish reason: %s", model.Quote(body))
	}
	return nil
}

// spoken is a body of JSON: all of it but white space is a piece of the answer.
type spoken struct {
	io.Reader
	stall *model.Stall
}

func (r *spoken) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if len(bytes.TrimSpace(p[:n])) > 0 {
		r.stall.Progress(false)
	}
	return n, err
}

// drain reads what is left of the body, if it comes at once.
func (s *stream) drain(br *bufio.Reader) {
	s.stall.Within(afterLast)
	_, _ = io.CopyN(io.Discard, br, 64<<10) // the answer is complete, with or without an error here
}

func readError(ctx context.Context, err error, resp *http.Response, empty bool) error {
	if stalled, ok := errors.AsType[*model.Error](context.Cause(ctx)); ok {
		return stalled
	}
	if errors.Is(err, errTooLong) {
		return Garbage("the server sent an event longer than %d bytes", maxEvent)
	}
	if errors.Is(err, io.EOF) {
		// An empty body that was meant to be one is an answer; an empty stream
		// is a stream that was cut.
		if empty && resp != nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			return Garbage("the server answered 200 with an empty body")
		}
		err = errCut
	}
	return cut(err)
}

func cut(err error) error {
	return &model.Error{Kind: model.Retryable, Class: "stream", Err: fmt.Errorf("read the answer: %w", err)}
}

// protocol is the class of an answer that is not of the API.
const protocol = "protocol"

// Garbage is the error for a server that speaks something else.
func Garbage(format string, args ...any) error {
	return &model.Error{
		Kind: model.Never, Class: protocol, Err: fmt.Errorf(format, args...),
		Hint: "is spec.baseURL right, and does it speak this API?",
	}
}

// Refused is the error for a fault inside an answer that began well.
func Refused(f model.Fault) error { return model.Status(0, nil, f, time.Time{}) }
