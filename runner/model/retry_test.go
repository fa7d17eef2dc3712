package model

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

func TestRetry(t *testing.T) {
	busy := &Error{Kind: Retryable, Class: "503", Err: errors.New("busy")}
	asks := func(d time.Duration) *Error {
		return &Error{Kind: Retryable, Class: "429", Err: errors.New("slow down"), Wait: &d}
	}
	cases := map[string]struct {
		reason   string
		errs     []error
		rand     float64
		deadline time.Duration
		want     reason.Reason
		attempts int
		waited   time.Duration
	}{
		"first try":     {"a success is returned", nil, 0.5, 0, "", 1, 0},
		"recovers":      {"1 s and 2 s are waited in the middle of the jitter", []error{busy, busy}, 0.5, 0, "", 3, 3 * time.Second},
		"low jitter":    {"10 % less", []error{busy}, 0, 0, "", 2, 900 * time.Millisecond},
		"spent":         {"five requests in total, 1+2+4+8 s between", []error{busy, busy, busy, busy, busy, busy}, 0.5, 0, reason.ProviderUnavailable, 5, 15 * time.Second},
		"header":        {"what the server asks is waited exactly", []error{asks(7 * time.Second)}, 0, 0, "", 2, 7 * time.Second},
		"header jitter": {"plus at most 100 ms", []error{asks(7 * time.Second)}, 1, 0, "", 2, 7100 * time.Millisecond},
		"too long":      {"longer than maxDelay is not waited", []error{asks(61 * time.Second)}, 0, 0, reason.ProviderUnavailable, 1, 0},
		"for ever":      {"a wait beyond counting is not waited", []error{asks(1<<63 - 1)}, 1, 0, reason.ProviderUnavailable, 1, 0},
		"deadline":      {"a wait that ends after the deadline is not begun", []error{asks(7 * time.Second)}, 0, 5 * time.Second, reason.ProviderUnavailable, 1, 0},
		"never":         {"an error that will not pass is not repeated", []error{&Error{Kind: Never, Err: errors.New("no")}}, 0, 0, reason.ModelError, 1, 0},
		"credential":    {"a refused key is not tried again", []error{&Error{Kind: Credential, Err: errors.New("no")}}, 0, 0, reason.CredentialRejected, 1, 0},
		"overflow":      {"too long stays too long", []error{&Error{Kind: Overflow, Err: errors.New("no")}}, 0, 0, reason.ContextExhausted, 1, 0},
		"filtered":      {"refused content stays refused", []error{&Error{Kind: Filtered, Err: errors.New("no")}}, 0, 0, reason.ContentFiltered, 1, 0},
		"quota":         {"a quota is not back in a minute", []error{&Error{Kind: Unavailable, Err: errors.New("no")}}, 0, 0, reason.ProviderUnavailable, 1, 0},
		"unknown":       {"an error of no kind is ours", []error{errors.New("bug")}, 0, 0, reason.Internal, 1, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				start, n, told := time.Now(), 0, 0
				emit := func(d message.Delta) error {
					told++
					if d.Kind != message.DeltaRetry || d.Retry.Attempt != told || d.Retry.Attempts != 5 {
						t.Errorf("delta %+v", d)
					}
					return nil
				}
				r := Retry{Rand: func() float64 { return c.rand }}
				out, err := r.Do(ctx, emit, func(context.Context) (*message.Output, error) {
					n++
					if n <= len(c.errs) {
						return nil, c.errs[n-1]
					}
					return &message.Output{Text: "ok"}, nil
				})
				if c.want == "" && (err != nil || out.Text != "ok") {
					t.Fatalf("%s: got %v, %v", c.reason, out, err)
				}
				if c.want != "" && (err == nil || reason.Of(err) != c.want) {
					t.Fatalf("%s: got %v, want reason %s", c.reason, err, c.want)
				}
				if n != c.attempts || told != c.attempts-1 {
					t.Errorf("%s: %d attempts and %d told, want %d", c.reason, n, told, c.attempts)
				}
				if got := time.Since(start); got != c.waited {
					t.Errorf("%s: waited %s, want %s", c.reason, got, c.waited)
				}
			})
		})
	}
}

func TestRetryDelayStaysBelowMaximum(t *testing.T) {
	for n := 1; n < 100; n++ {
		for _, chance := range []float64{0, 0.5, 0.999} {
			r := Retry{MaxDelay: 10 * time.Second, Rand: func() float64 { return chance }}.withDefaults()
			if d := r.wait(n, &Error{}); d <= 0 || d > 10*time.Second {
				t.Errorf("attempt %d: %s", n, d)
			}
		}
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &Error{Kind: Retryable, Class: "503", Err: errors.New("busy")}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(300*time.Millisecond, cancel)
		start := time.Now()
		_, err := Retry{}.Do(ctx, func(message.Delta) error { return nil }, func(context.Context) (*message.Output, error) { return nil, busy })
		if reason.Of(err) != reason.Cancelled || time.Since(start) != 300*time.Millisecond {
			t.Errorf("cancelled in a wait: %v after %s", err, time.Since(start))
		}
		stop := reason.New(reason.BudgetExceeded, "the money is gone")
		ctx, end := context.WithCancelCause(t.Context())
		end(stop)
		_, err = Retry{}.Do(ctx, nil, func(ctx context.Context) (*message.Output, error) { return nil, ctx.Err() })
		if reason.Of(err) != reason.BudgetExceeded {
			t.Errorf("the cause of the end is lost: %v", err)
		}
	})
}

func TestRetryStopsWhenNobodyListens(t *testing.T) {
	gone := errors.New("gone")
	_, err := Retry{}.Do(t.Context(), func(message.Delta) error { return gone }, func(context.Context) (*message.Output, error) {
		return nil, &Error{Kind: Retryable, Err: errors.New("busy")}
	})
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		s := NewStall(cancel, Patience{}.WithDefaults())
		defer s.Stop()
		r := s.Reader(&ticks{every: 50 * time.Second, left: 3})
		time.Sleep(4 * time.Minute) // synctest's clock: the first byte may take long
		buf := make([]byte, 1)
		for range 3 {
			if _, err := r.Read(buf); err != nil || ctx.Err() != nil {
				t.Fatalf("a slow stream was ended: %v, %v", err, context.Cause(ctx))
			}
			s.Progress(false)
		}
		time.Sleep(59 * time.Second)
		if ctx.Err() != nil {
			t.Fatal("ended too early")
		}
		time.Sleep(2 * time.Second)
		var e *Error
		if !errors.As(context.Cause(ctx), &e) || e.Kind != Retryable || e.Class != "stream" {
			t.Errorf("cause %v", context.Cause(ctx))
		}
	})
}

// ticks gives a byte now and then.
type ticks struct {
	every time.Duration
	left  int
}

func (k *ticks) Read(p []byte) (int, error) {
	time.Sleep(k.every)
	k.left--
	p[0] = 'x'
	return 1, nil
}

func TestExplain(t *testing.T) {
	for err, want := range map[error]reason.Reason{
		context.Canceled:                 reason.Cancelled,
		context.DeadlineExceeded:         reason.DeadlineExceeded,
		reason.New(reason.MaxSteps, "x"): reason.MaxSteps,
		errors.New("x"):                  reason.Internal,
		&Error{Kind: Overflow, Err: errors.New("x"), Hint: "shorter"}: reason.ContextExhausted,
	} {
		got := Explain(err)
		if reason.Of(got) != want || !errors.Is(got, err) {
			t.Errorf("%v: reason %s, want %s", err, reason.Of(got), want)
		}
	}
	if d := cmp.Diff("shorter", reason.Hint(Explain(&Error{Err: errors.New("x"), Hint: "shorter"}))); d != "" {
		t.Error(d)
	}
}
