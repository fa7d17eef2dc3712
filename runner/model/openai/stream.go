package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/sse"
)

const (
	// maxEvent bounds one event. Pieces are small; whole calls are the largest
	// thing that is ever sent at once.
	maxEvent = 8 << 20
	readSize = 32 << 10
	// afterFinish is how long a server may take to say what it still has to say
	// when the answer itself is complete: the usage and [DONE].
	afterFinish = 5 * time.Second
	// afterDone is how long to wait for the end of the body, which lets the
	// connection be used again.
	afterDone = 50 * time.Millisecond
)

// errCut is a stream that ended before the answer did.
var errCut = errors.New("the stream ended before the answer was complete")

const notEvents = "is spec.baseURL right, and does it speak the chat completions API? openai wants https://host/v1"

// read reads the whole answer of a 200.
func read(ctx context.Context, resp *http.Response, stall *model.Stall, a *answer) error {
	br := bufio.NewReaderSize(stall.Reader(resp.Body), readSize)
	first, err := firstByte(br)
	if err != nil {
		return readError(ctx, err, resp, first == 0)
	}
	switch first {
	case '<':
		start, _ := br.Peek(min(br.Buffered(), 200))
		return garbage("the server answered 200 with a page, not with events: %s", model.Quote(start))
	case '{', '[':
		return whole(ctx, br, resp, a)
	}
	return events(ctx, br, stall, a)
}

// firstByte skips space and a byte order mark, and peeks.
func firstByte(br *bufio.Reader) (byte, error) {
	for {
		b, err := br.Peek(1)
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n\xef\xbb\xbf", rune(b[0])) && b[0] < 0x80 {
			return b[0], nil
		}
		if b[0] >= 0x80 && b[0] != 0xef && b[0] != 0xbb && b[0] != 0xbf {
			return b[0], nil
		}
		if _, err := br.Discard(1); err != nil {
			return 0, err
		}
	}
}

func events(ctx context.Context, br *bufio.Reader, stall *model.Stall, a *answer) error {
	r := sse.NewReader(br, maxEvent)
	finished := false
	for n := 0; ; n++ {
		e, err := r.Next()
		if errors.Is(err, io.EOF) && n == 0 && r.Junk() != nil {
			return garbage("the server answered 200 with something that is no stream of events: %s", model.Quote(r.Junk()))
		}
		if err != nil && a.finish != "" && !errors.Is(err, sse.ErrTooLong) {
			// The answer is complete; only the usage or [DONE] is missing.
			return nil
		}
		if err != nil {
			return readError(ctx, err, nil, false)
		}
		if string(bytes.TrimSpace(e.Data)) == "[DONE]" {
			if a.finish == "" && n > 0 {
				a.finish = "stop"
			}
			if n == 0 {
				return garbage("the server ended the stream without an answer")
			}
			drain(br, stall)
			return nil
		}
		if err := event(a, e, n); err != nil {
			return err
		}
		if a.finish != "" && !finished {
			finished = true
			stall.Expect(afterFinish)
		}
	}
}

// event adds one event. A piece that was cut is the stream's fault, a whole one
// that is no JSON is the server's.
func event(a *answer, e sse.Event, n int) error {
	if e.Name == "error" {
		return model.Status(0, nil, model.ParseFault(e.Data), time.Time{})
	}
	err := a.chunk(e.Data, n)
	switch {
	case a.stopped != nil:
		return a.stopped
	case err != nil && e.Cut && a.finish == "":
		return cut(errCut)
	case err != nil && e.Cut:
		return nil
	case err != nil:
		return garbage("the server sent an event that is no chat completion: %w: %s", err, model.Quote(e.Data))
	case a.fault != nil:
		return model.Status(0, nil, *a.fault, time.Time{})
	}
	return nil
}

// whole reads a body that is one JSON value: an answer that was not streamed,
// or an error under status 200.
func whole(ctx context.Context, br *bufio.Reader, resp *http.Response, a *answer) error {
	body, err := io.ReadAll(io.LimitReader(br, maxEvent+1))
	if err != nil {
		return readError(ctx, err, resp, false)
	}
	if len(body) > maxEvent {
		return readError(ctx, sse.ErrTooLong, resp, false)
	}
	err = a.chunk(body, 0)
	switch {
	case a.stopped != nil:
		return a.stopped
	case err != nil:
		return garbage("the server answered 200 with something that is no chat completion: %w: %s", err, model.Quote(body))
	case a.fault != nil:
		return model.Status(0, nil, *a.fault, time.Time{})
	case a.finish == "" && a.text.Len() == 0 && len(a.calls) == 0:
		return garbage("the server answered 200 with JSON that holds no answer: %s", model.Quote(body))
	case a.finish == "":
		a.finish = "stop"
	}
	return nil
}

// drain reads what is left of the body, if it comes at once.
func drain(br *bufio.Reader, stall *model.Stall) {
	stall.Expect(afterDone)
	_, _ = io.CopyN(io.Discard, br, 64<<10) // the answer is complete whatever this says
}

func readError(ctx context.Context, err error, resp *http.Response, empty bool) error {
	if stalled, ok := errors.AsType[*model.Error](context.Cause(ctx)); ok {
		return stalled
	}
	if errors.Is(err, sse.ErrTooLong) {
		return garbage("the server sent an event longer than %d bytes", maxEvent)
	}
	if errors.Is(err, io.EOF) {
		// An empty body that was meant to be one is an answer; an empty stream
		// is a stream that was cut.
		if empty && resp != nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			return garbage("the server answered 200 with an empty body")
		}
		err = errCut
	}
	return cut(err)
}

func cut(err error) error {
	return &model.Error{Kind: model.Retryable, Class: "stream", Err: fmt.Errorf("read the answer: %w", err)}
}

func garbage(format string, args ...any) error {
	return &model.Error{Kind: model.Never, Class: "protocol", Err: fmt.Errorf(format, args...), Hint: notEvents}
}
