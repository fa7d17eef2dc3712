package modeltest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// idle is the silence that is a stall. A server that is only slow must not be
// taken for one, however busy the machine.
const idle = 400 * time.Millisecond

func (s suite) stall(t *testing.T) {
	for _, at := range []int{0, 1, 400} {
		k := s.patient(t, idle, full.Step().StallAt(at), full.Step())
		k.wants(t, wantFull())
		if len(k.waits) != 1 || len(k.Requests()) != 2 {
			t.Errorf("stalled at %d: %d waits, %d requests", at, len(k.waits), len(k.Requests()))
		}
	}
	// A server that has sent everything and does not close the connection does not stall.
	body := s.wire.Stream(Answer{Text: "ok", Usage: full.Usage})
	k := s.patient(t, idle, Events(string(body)).StallAt(len(body)))
	out, err := k.next(t, t.Context(), message.Request{})
	if err != nil || out.Text != "ok" {
		t.Errorf("a stream that stays open behind its end: %+v, %v", out, err)
	}
}

// keepAlives is about servers that keep the connection open and send no piece of
// an answer, before the first piece and behind it.
func (s suite) keepAlives(t *testing.T) {
	begun := len(s.wire.Begun("half"))
	steps := map[string]Step{"header": DripHeader()}
	for name, again := range map[string]string{"comments": ": keep-alive\n\n", "white space": "\n", "pings": s.wire.traits().ping} {
		steps[name] = Events(s.wire.Begun("half")).StallWith(0, again)
		steps[name+" behind a piece"] = Events(s.wire.Begun("half")).StallWith(begun, again)
	}
	for name, step := range steps {
		k := s.patient(t, idle, step, full.Step())
		k.wants(t, wantFull())
		if len(k.waits) != 1 || len(k.Requests()) != 2 {
			t.Errorf("%s: %d waits, %d requests", name, len(k.waits), len(k.Requests()))
		}
	}
}

func (s suite) retryAfter(t *testing.T) {
	date := func() string { return time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat) }
	cases := map[string]struct {
		header    http.Header
		low, high time.Duration
	}{
		"milliseconds first": {http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"9"}}, 1500 * time.Millisecond, 1500 * time.Millisecond},
		"seconds":            {http.Header{"Retry-After": {"2"}}, 2 * time.Second, 2 * time.Second},
		"fractions":          {http.Header{"Retry-After": {"0.5"}}, 500 * time.Millisecond, 500 * time.Millisecond},
		"date":               {http.Header{"Retry-After": {date()}}, time.Second, 3 * time.Second},
		"nonsense":           {http.Header{"Retry-After": {"soon"}}, 900 * time.Millisecond, 900 * time.Millisecond},
		"negative":           {http.Header{"Retry-After": {"-5"}}, 900 * time.Millisecond, 900 * time.Millisecond},
		"none":               {nil, 900 * time.Millisecond, 900 * time.Millisecond},
	}
	for name, c := range cases {
		for _, status := range []int{429, 503} {
			k := s.talk(t, Refuse(status, c.header, s.wire.Fault(status, "later", "")), full.Step())
			k.wants(t, wantFull())
			if len(k.waits) != 1 || k.waits[0] < c.low || k.waits[0] > c.high {
				t.Errorf("%s, %d: waited %v, want %s to %s", name, status, k.waits, c.low, c.high)
			}
		}
	}
}

// asksInTheBody waits as long as a refusal's own words ask for.
func (s suite) asksInTheBody(t *testing.T) {
	asks := s.wire.traits().asks
	if asks == "" {
		t.Skip("this API asks in headers only, which RetryAfterIsWaited tests")
	}
	k := s.talk(t, Refuse(429, nil, asks), full.Step())
	k.wants(t, wantFull())
	if len(k.waits) != 1 || k.waits[0] != 2*time.Second {
		t.Errorf("waited %v, want 2s", k.waits)
	}
}

func (s suite) cancel(t *testing.T) {
	// After the first piece that is emitted.
	stream := s.wire.Stream(full)
	begun := bytes.Index(stream, []byte("The user"))
	begun += bytes.Index(stream[begun:], []byte("\n\n")) + 2
	k := s.talk(t, full.Step().StallAt(begun))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := k.Next(ctx, message.Request{}, func(message.Delta) error { cancel(); return nil })
	if got := reason.Of(err); got != reason.Cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: reason %s, error %v", got, err)
	}
	if len(k.Requests()) != 1 || len(k.waits) > 0 {
		t.Errorf("%d requests and %d waits before the stream was cancelled", len(k.Requests()), len(k.waits))
	}
	k = s.talk(t, full.Step().StallAt(begun))
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = k.Next(ctx, message.Request{}, func(message.Delta) error { return nil })
	if got := reason.Of(err); got != reason.DeadlineExceeded {
		t.Errorf("deadline: reason %s, error %v", got, err)
	}
	if n := len(k.Requests()); n > 1 { // 0: the machine was so busy that none was sent
		t.Errorf("%d requests after the deadline", n)
	}
}

func (s suite) emitError(t *testing.T) {
	enough := errors.New("seen enough")
	k := s.talk(t, full.Step(), full.Step())
	_, err := k.Next(t.Context(), message.Request{}, func(message.Delta) error { return enough })
	if !errors.Is(err, enough) || len(k.Requests()) != 1 {
		t.Errorf("emit's error: %v after %d requests", err, len(k.Requests()))
	}
}
