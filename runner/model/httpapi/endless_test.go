package httpapi

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
)

// trickle is a body with a beginning, followed by the same piece for ever, one each pause.
// It ends when it is closed, or its request is given up.
type trickle struct {
	first, again string
	pause        time.Duration
	gone         <-chan struct{}
	closed       chan struct{}
	close        func() // a reader and a time limit may do so at once
}

func (b *trickle) RoundTrip(r *http.Request) (*http.Response, error) {
	closed := make(chan struct{})
	b.gone, b.closed, b.close = r.Context().Done(), closed, sync.OnceFunc(func() { close(closed) })
	status := http.StatusOK
	if b.first == "{" {
		status = http.StatusBadRequest
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: b, Request: r}, nil
}

func (b *trickle) Read(p []byte) (int, error) {
	if b.first != "" {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	select {
	case <-time.After(b.pause):
		return copy(p, b.again), nil
	case <-b.gone:
	case <-b.closed:
	}
	return 0, io.ErrClosedPipe
}

func (b *trickle) Close() error {
	b.close()
	return nil
}

// TestServersThatNeverStopEndNoRun is about servers that keep the stream alive
// with nothing when all has been said.
func TestServersThatNeverStopEndNoRun(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		body   trickle
		want   string
		within time.Duration
	}{
		"comments behind the answer":       {"only the usage may be missing", trickle{first: "data: a\n\ndata: end\n\n", again: ": hi\n\n", pause: time.Second}, "a", 6 * time.Second},
		"empty events behind the answer":   {"an event that adds nothing is no news", trickle{first: "data: a\n\ndata: end\n\n", again: "data:\n\n", pause: time.Second}, "a", 6 * time.Second},
		"comments behind the last event":   {"nothing is missing", trickle{first: "data: a\n\ndata: last\n\n", again: ":", pause: 10 * time.Millisecond}, "a", 100 * time.Millisecond},
		"an error that comes byte by byte": {"its status is known", trickle{first: "{", again: " ", pause: time.Second}, "", 6 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			out, err := ask(t, Config{}, &c.body)
			if took := time.Since(began); took > c.within {
				t.Errorf("%s (%s): it took %s, want at most %s", name, c.reason, took, c.within)
			}
			switch {
			case c.want == "" && (reason.Of(err) != reason.ModelError || !strings.Contains(err.Error(), "400")):
				t.Errorf("%s (%s): %v, want the status", name, c.reason, err)
			case c.want != "" && (err != nil || out.Text != c.want):
				t.Errorf("%s (%s): %+v, %v", name, c.reason, out, err)
			}
		})
	}
}

// TestAStreamWithoutProgressIsStalled is about servers that keep a connection open
// and send no piece of an answer: the request counts as failed, and is sent again.
func TestAStreamWithoutProgressIsStalled(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		body   trickle
		after  time.Duration
	}{
		"comments":               {"they keep proxies from hanging up", trickle{first: ": hi\n\n", again: ": hi\n\n", pause: time.Second}, 2 * time.Minute},
		"white space":            {"so do blank lines", trickle{first: "\n", again: "\n", pause: time.Second}, 2 * time.Minute},
		"events of no content":   {"a ping is no progress", trickle{first: "data: a\n\n", again: "data:\n\n", pause: time.Second}, 2 * time.Minute},
		"comments behind a text": {"half an answer does not become whole by them", trickle{first: "data: a\n\n", again: ": hi\n\n", pause: time.Second}, 2 * time.Minute},
		"an event that drips":    {"a piece counts when it is complete", trickle{first: "data: a\n\ndata: ", again: "x", pause: time.Second}, 2 * time.Minute},
		"JSON and white space":   {"white space is no part of an answer", trickle{first: "[1,", again: " ", pause: time.Second}, 2 * time.Minute},
		"nothing":                {"a silent connection may be broken", trickle{first: "data: a\n\n", pause: time.Hour}, time.Minute},
		"pings of a busy server": {"a hidden thought is long", trickle{first: "data: think\n\n", again: "data:\n\n", pause: time.Second}, 10 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			out, err := ask(t, Config{Retry: model.Retry{Attempts: 1}}, &c.body)
			if reason.Of(err) != reason.ProviderUnavailable {
				t.Errorf("%s (%s): %+v, %v", name, c.reason, out, err)
			}
			if took := time.Since(began); took < c.after || took > c.after+2*time.Second {
				t.Errorf("%s (%s): it took %s, want %s", name, c.reason, took, c.after)
			}
		})
	}
}

// TestProgressBeginsANewWait is about models that are slow and no more than that.
func TestProgressBeginsANewWait(t *testing.T) {
	for name, piece := range map[string]struct {
		says  string
		pause time.Duration
	}{
		"a piece now and then":         {"data: a\n\n", 59 * time.Second},
		"pings while a server is busy": {"data: think\n\ndata:\n\n", 59 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			go func() {
				defer w.Close()
				for range 20 {
					time.Sleep(piece.pause)
					_, _ = io.WriteString(w, piece.says)
				}
				_, _ = io.WriteString(w, "data: last\n\n")
			}()
			if _, err := ask(t, Config{Retry: model.Retry{Attempts: 1}}, answered{200, r, nil}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestADeclaredBoundReplacesTheOthers is about models that think for longer.
func TestADeclaredBoundReplacesTheOthers(t *testing.T) {
	hour := model.Patience{FirstByte: time.Hour, Idle: time.Hour, Quiet: time.Hour, Busy: time.Hour}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := ask(t, Config{Patience: hour, Retry: model.Retry{Attempts: 1}}, &trickle{first: ": hi\n\n", again: ": hi\n\n", pause: time.Second})
		if took := time.Since(began); err == nil || took < time.Hour || took > time.Hour+2*time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// TestTextBehindTheEndIsNotCut is about servers that say with every piece how the
// answer ends.
func TestTextBehindTheEndIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		go func() {
			defer w.Close()
			_, _ = io.WriteString(w, "data: end\n\n")
			for range 10 {
				time.Sleep(3 * time.Second)
				_, _ = io.WriteString(w, "data: a\n\n")
			}
		}()
		out, err := ask(t, Config{}, answered{200, r, nil})
		if err != nil || out.Text != strings.Repeat("a", 10) {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

func TestAKeyThatWasCutIsNotShown(t *testing.T) {
	const key = "canary-0123456789"
	for cut := range len(key) {
		body := `{"error":{"message":"` + strings.Repeat("x", 399-cut) + " " + key + ` is no key"}}`
		_, err := ask(t, Config{APIKey: func(context.Context) (string, error) { return key, nil }}, answered{400, strings.NewReader(body), nil})
		if err == nil || strings.Contains(err.Error(), key[:leastKey]) {
			t.Errorf("cut after %d bytes of the key: %v", cut, err)
		}
	}
}
