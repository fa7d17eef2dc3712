package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
)

// Defaults of Retry, as the Model kind documents them.
const (
	DefaultAttempts = 5
	DefaultMaxDelay = 60 * time.Second
)

const (
	firstDelay   = time.Second
	headerJitter = 100 * time.Millisecond
)

// Retry is the one layer that repeats requests: the SDKs' own layers are off,
// so that every failed attempt is a visible event. The zero value has the
// documented defaults.
type Retry struct {
	// Attempts is the number of requests in total, the first included.
	Attempts int
	// MaxDelay is the longest wait. A server that asks for more is not waited for.
	MaxDelay time.Duration
	// Now, Rand and Sleep replace the clock and chance; Rand returns [0, 1).
	Now   func() time.Time
	Rand  func() float64
	Sleep func(ctx context.Context, d time.Duration) error
}

// Attempt is one request and its whole answer.
type Attempt func(ctx context.Context) (*message.Output, error)

// Do calls attempt until it succeeds, fails permanently, or the attempts are spent. Before
// each wait it emits a DeltaRetry; an error of emit ends it.
//
//	attempt returns           Do
//	output, nil               returns it
//	Retryable or Malformed    emits, waits and calls attempt again; the last one is returned
//	any other error           returns it
//	anything, and ctx ended   returns the end of ctx
//
// A wait that MaxDelay or the deadline of ctx does not allow is not begun. Every error has
// a reason.
func (r Retry) Do(ctx context.Context, emit func(message.Delta) error, attempt Attempt) (*message.Output, error) {
	r = r.withDefaults()
	for n := 1; ; n++ {
		out, err := attempt(ctx)
		if err == nil {
			return out, nil
		}
		if ctx.Err() != nil {
			return nil, Explain(fmt.Errorf("ask the model: %w", context.Cause(ctx)))
		}
		failed, ok := errors.AsType[*Error](err)
		if !ok || !failed.repeatable() {
			return nil, Explain(err)
		}
		if n >= r.Attempts {
			return nil, Explain(fmt.Errorf("attempt %d of %d: %w", n, r.Attempts, err))
		}
		wait := r.wait(n, failed)
		if err := r.allows(ctx, wait, failed); err != nil {
			return nil, Explain(err)
		}
		retry := &message.Retry{Attempt: n, Attempts: r.Attempts, Class: failed.Class, Error: failed.Error(), WaitMillis: wait.Milliseconds()}
		if err := emit(message.Delta{Kind: message.DeltaRetry, Retry: retry}); err != nil {
			return nil, err
		}
		if err := r.Sleep(ctx, wait); err != nil {
			return nil, Explain(fmt.Errorf("wait for the model: %w", err))
		}
	}
}

func (r Retry) withDefaults() Retry {
	if r.Attempts <= 0 {
		r.Attempts = DefaultAttempts
	}
	if r.MaxDelay <= 0 {
		r.MaxDelay = DefaultMaxDelay
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.Rand == nil {
		r.Rand = rand.Float64
	}
	if r.Sleep == nil {
		r.Sleep = sleep
	}
	return r
}

// wait returns how long to wait after the n-th attempt. What the server asks
// for is waited exactly, plus a little so that many runs do not return at once.
func (r Retry) wait(n int, failed *Error) time.Duration {
	if failed.Wait != nil {
		return *failed.Wait + time.Duration(r.Rand()*float64(headerJitter))
	}
	d := r.MaxDelay
	if n < 32 {
		d = min(d, firstDelay<<(n-1))
	}
	d = time.Duration(float64(d) * (0.9 + 0.2*r.Rand()))
	return min(d, r.MaxDelay)
}

// allows reports whether the wait may be begun.
func (r Retry) allows(ctx context.Context, wait time.Duration, failed *Error) error {
	if failed.Wait != nil && *failed.Wait > r.MaxDelay {
		return &Error{
			Kind: Unavailable, Class: failed.Class, Wait: failed.Wait,
			Err:  fmt.Errorf("the server asks to wait %s, longer than retry.maxDelay %s: %w", failed.Wait.Round(time.Millisecond), r.MaxDelay, failed),
			Hint: "raise retry.maxDelay, name a fallback, or try again later",
		}
	}
	if deadline, ok := ctx.Deadline(); ok && r.Now().Add(wait).After(deadline) {
		return &Error{
			Kind: Unavailable, Class: failed.Class, Wait: failed.Wait,
			Err:  fmt.Errorf("the next attempt in %s would come after the deadline: %w", wait.Round(time.Millisecond), failed),
			Hint: "raise limits.timeout or name a fallback",
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// RetryAfter reads how long a server asks to wait: retry-after-ms, else retry-after in
// seconds, else as a date. A wait that overflows is the longest possible one, so that it
// is never begun.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d, true
	}
	v := h.Get("Retry-After")
	if d, ok := number(v, time.Second); ok {
		return d, true
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return max(0, t.Sub(now)), true
}

func number(s string, unit time.Duration) (time.Duration, bool) {
	const longest = time.Duration(1<<63 - 1)
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	// The first comparison is false for NaN as well.
	if !(f >= 0) || (err != nil && f == 0) {
		return 0, false
	}
	if f >= float64(longest/unit) {
		return longest, true
	}
	return time.Duration(f * float64(unit)), true
}
