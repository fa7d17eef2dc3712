// Package telemetry sends what runs do to an OpenTelemetry collector, as spans and metrics over OTLP/HTTP.
//
// It is a projection of the events of a run. Nothing of a run waits for it: spans go to a
// bounded queue, and what finds no room there, or is not accepted, is counted and reported
// once, when the Client is closed.
package telemetry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"agentctl.dev/agentctl/runner/model/httpapi"
)

const (
	// CloseTime bounds Close.
	CloseTime = time.Second
	// scope names what has made the spans and the metrics.
	scope = "agentctl.dev/agentctl"
	// maxQueue bounds the spans that wait, maxQueueBytes what they take; maxBatch is how
	// many are sent at a time, after maxDelay at the latest.
	maxQueue, maxQueueBytes = 2048, 16 << 20
	maxBatch                = 512
	maxDelay                = time.Second
)

// errClosed is the cause of the end of requests that Close does not wait for any more.
var errClosed = errors.New("telemetry was closed")

// Options are what a Client needs. Getenv is required.
type Options struct {
	// Getenv reads the variables of OpenTelemetry; see settings.go.
	Getenv func(string) string
	// Version of the program.
	Version string
	// Instance identifies this process among those of the service; "" makes a random id.
	Instance string
	// Now is the clock. Default: time.Now.
	Now func() time.Time

	transport http.RoundTripper // in place of that of the system, for tests
}

// Client sends the spans and metrics of the runs of this process. nil is a Client that
// sends nothing.
type Client struct {
	settings settings
	unread   []error // variables that are not honoured
	now      func() time.Time
	resource *resourcepb.Resource
	scope    *commonpb.InstrumentationScope
	meter    *meter

	ctx     context.Context //nolint:containedctx // it is the life of the senders
	cancel  context.CancelCauseFunc
	closing chan struct{}
	senders sync.WaitGroup
	release []func()

	mu     sync.Mutex
	queue  []queued
	bytes  int           // of the queue
	wake   chan struct{} // holds a token when a batch is full
	spans  tally
	points tally
}

// queued is a span that waits.
type queued struct {
	span *tracepb.Span
	size int
}

// tally is what became of what was to be sent.
type tally struct {
	made, lost int64
	err        error // why the latest was lost
}

// Open returns a Client for what the environment asks for; nil if that is nothing. Close it.
func Open(o Options) *Client {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // this is where the clock comes in
	}
	if o.Instance == "" {
		o.Instance = randomID()
	}
	s, errs := read(o.Getenv, o.Version, o.Instance)
	if s.traces == nil && s.metrics == nil && len(errs) == 0 {
		return nil
	}
	c := &Client{
		settings: s, unread: errs, now: o.Now, closing: make(chan struct{}), wake: make(chan struct{}, 1),
		resource: &resourcepb.Resource{Attributes: s.resource}, scope: &commonpb.InstrumentationScope{Name: scope, Version: o.Version},
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	if s.traces != nil {
		d := c.delivery(s.traces, o.transport)
		c.senders.Go(func() { c.sendSpans(d) })
	}
	if s.metrics != nil {
		c.meter = newMeter(o.Now())
		d := c.delivery(s.metrics, o.transport)
		c.senders.Go(func() { c.sendMetrics(d) })
	}
	return c
}

func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// delivery returns what sends to an endpoint. No redirect is followed: it would carry the
// headers to a place that nobody has named.
func (c *Client) delivery(e *endpoint, transport http.RoundTripper) *delivery {
	if transport == nil {
		t := httpapi.NewTransport()
		t.TLSClientConfig = e.tls
		c.release = append(c.release, t.CloseIdleConnections)
		transport = t
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &delivery{endpoint: e, client: &http.Client{Transport: transport, CheckRedirect: stay}, closing: c.closing}
}

// Close sends what is left, for at most CloseTime and until ctx ends, and returns what
// people should know: variables that are not honoured, and what was not delivered.
func (c *Client) Close(ctx context.Context) []string {
	if c == nil {
		return nil
	}
	close(c.closing)
	late := time.AfterFunc(CloseTime, func() { c.cancel(errClosed) })
	defer late.Stop()
	defer context.AfterFunc(ctx, func() { c.cancel(errClosed) })()
	c.senders.Wait()
	c.cancel(nil)
	for _, release := range c.release {
		release()
	}
	return c.warnings()
}

func (c *Client) warnings() (all []string) {
	for _, err := range c.unread {
		all = append(all, "telemetry: "+err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, signal := range []struct {
		to    *endpoint
		what  string
		tally tally
	}{{c.settings.traces, "spans", c.spans}, {c.settings.metrics, "reports of metrics", c.points}} {
		if t := signal.tally; t.lost > 0 {
			all = append(all, fmt.Sprintf("telemetry: %d of %d %s were not delivered to %s: %v", t.lost, t.made, signal.what, signal.to.shown(), t.err))
		}
	}
	return all
}

var errFull = errors.New("there were more than the queue holds")

// offer queues a span, and drops it where there is no room.
func (c *Client) offer(s *tracepb.Span, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans.made++
	if len(c.queue) >= maxQueue || c.bytes+size > maxQueueBytes {
		c.spans.lost++
		c.spans.err = errFull
		return
	}
	c.queue = append(c.queue, queued{s, size})
	if c.bytes += size; len(c.queue) >= maxBatch {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// take returns the next batch.
func (c *Client) take() []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.queue), maxBatch)
	batch := make([]*tracepb.Span, n)
	for i, q := range c.queue[:n] {
		batch[i] = q.span
		c.bytes -= q.size
	}
	if c.queue = slices.Delete(c.queue, 0, n); len(c.queue) == 0 {
		c.queue = nil
	}
	return batch
}

func (c *Client) lose(t *tally, n int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.lost += n
	t.err = err
}

// sendSpans sends batches until the Client is closed and the queue is empty.
func (c *Client) sendSpans(d *delivery) {
	tick := time.NewTicker(maxDelay)
	defer tick.Stop()
	for {
		last := false
		select {
		case <-c.wake:
		case <-tick.C:
		case <-c.closing:
			last = true
		}
		for batch := c.take(); len(batch) > 0; batch = c.take() {
			c.sendBatch(d, batch)
		}
		if last {
			return
		}
	}
}

var errRejected = errors.New("it rejected them")

func (c *Client) sendBatch(d *delivery, batch []*tracepb.Span) {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: c.resource, SchemaUrl: schemaURL,
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: c.scope, Spans: batch, SchemaUrl: schemaURL}},
	}}})
	var rejected int64
	if err == nil {
		rejected, err = d.send(c.ctx, body)
	}
	switch {
	case err != nil:
		c.lose(&c.spans, int64(len(batch)), err)
	case rejected > 0:
		c.lose(&c.spans, min(rejected, int64(len(batch))), errRejected)
	}
}

// sendMetrics reports the metrics now and then, and when the Client is closed.
func (c *Client) sendMetrics(d *delivery) {
	tick := time.NewTicker(c.settings.interval)
	defer tick.Stop()
	for {
		last := false
		select {
		case <-tick.C:
		case <-c.closing:
			last = true
		}
		c.report(d)
		if last {
			return
		}
	}
}

func (c *Client) report(d *delivery) {
	metrics := c.meter.metrics(c.now())
	if len(metrics) == 0 {
		return
	}
	c.mu.Lock()
	c.points.made++
	c.mu.Unlock()
	body, err := proto.Marshal(&metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource: c.resource, SchemaUrl: schemaURL,
		ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: c.scope, Metrics: metrics, SchemaUrl: schemaURL}},
	}}})
	var rejected int64
	if err == nil {
		rejected, err = d.send(c.ctx, body)
	}
	if err == nil && rejected > 0 {
		err = errRejected
	}
	if err != nil {
		c.lose(&c.points, 1, err)
	}
}
