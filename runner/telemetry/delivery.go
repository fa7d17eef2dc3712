package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// mostAttempts of one request, with firstWait between the first two and twice that
	// before the third; a collector may ask for up to longestWait.
	mostAttempts = 3
	firstWait    = 250 * time.Millisecond
	longestWait  = 5 * time.Second
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 64 << 10
)

// delivery sends requests to one endpoint.
type delivery struct {
	*endpoint
	client *http.Client
	// closing is closed when the program is about to end: nothing waits any more.
	closing <-chan struct{}
}

// failure is an answer that is not a success.
type failure struct {
	err   error
	again bool
	wait  time.Duration
}

// send sends a request until it is accepted or given up, and returns how many of its items
// the collector has rejected.
func (d *delivery) send(ctx context.Context, body []byte) (rejected int64, err error) {
	if d.gzip {
		if body, err = zipped(body); err != nil {
			return 0, err
		}
	}
	wait := firstWait
	for attempt := 1; ; attempt++ {
		rejected, failed := d.post(ctx, body)
		if failed == nil {
			return rejected, nil
		}
		if !failed.again || attempt == mostAttempts || !d.pause(ctx, max(wait, failed.wait)) {
			return 0, failed.err
		}
		wait *= 2
	}
}

// pause waits before another attempt; false: there is no time for one.
func (d *delivery) pause(ctx context.Context, wait time.Duration) bool {
	select {
	case <-d.closing:
		return false
	default:
	}
	t := time.NewTimer(min(wait, longestWait))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-d.closing: // the last attempt
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *delivery) post(ctx context.Context, body []byte) (rejected int64, failed *failure) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(body))
	if err != nil {
		return 0, &failure{err: errors.New("the request cannot be made")} // the error holds the address
	}
	req.Header = d.headers.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "agentctl-otlp")
	if d.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return 0, &failure{err: plain(ctx, err), again: ctx.Err() == nil}
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, &failure{err: plain(ctx, err)} // it may have been accepted: another attempt could double it
	}
	switch code := resp.StatusCode; {
	case code/100 == 2:
		return partial(answer), nil
	case code == http.StatusTooManyRequests, code == http.StatusBadGateway, code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout:
		return 0, &failure{err: answered(code), again: true, wait: retryAfter(resp.Header)}
	default:
		return 0, &failure{err: answered(code)}
	}
}

func answered(code int) error {
	return errors.New(strings.TrimSpace(fmt.Sprintf("it answered %d %s", code, http.StatusText(code))))
}

// plain is an error without the address, which may hold a password.
func plain(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, context.DeadlineExceeded), errors.Is(cause, errClosed):
		return errors.New("it did not answer in time")
	case cause != nil:
		return cause
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		return sent.Err
	}
	return err
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, int(longestWait/time.Second))) * time.Second
}

func zipped(body []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(body)
	if closed := w.Close(); err == nil {
		err = closed
	}
	return b.Bytes(), err
}

// partial returns how many items an accepted request has lost: partial_success (1) of the
// answer holds rejected_spans or rejected_data_points (1).
func partial(answer []byte) int64 {
	inner, ok := field(answer, 1, protowire.BytesType)
	if !ok {
		return 0
	}
	n, ok := field(inner, 1, protowire.VarintType)
	if !ok {
		return 0
	}
	count, size := protowire.ConsumeVarint(n)
	if size < 0 || int64(count) < 0 { //nolint:gosec // the sign is looked at
		return 0
	}
	return int64(count) //nolint:gosec // as above
}

// field returns the value of a field of a message.
func field(b []byte, wanted protowire.Number, kind protowire.Type) ([]byte, bool) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, false
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(num, typ, b)
		if size < 0 {
			return nil, false
		}
		if num == wanted && typ == kind {
			if kind == protowire.BytesType {
				value, _ := protowire.ConsumeBytes(b)
				return value, true
			}
			return b[:size], true
		}
		b = b[size:]
	}
	return nil, false
}
