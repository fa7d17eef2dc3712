package telemetry

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// received is what a collector of a test has received.
type received struct {
	mu       sync.Mutex
	headers  []http.Header
	paths    []string
	spans    []*tracepb.Span
	traces   []*tracepb.TracesData
	metrics  map[string][]*metricspb.HistogramDataPoint
	requests int
}

// collector starts a collector that decodes what it receives. Answer, which may be nil,
// answers a request, by its number, in place of that.
func collector(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request) bool) (*received, string) {
	t.Helper()
	c := &received{metrics: map[string][]*metricspb.HistogramDataPoint{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.requests++
		n := c.requests
		c.headers, c.paths = append(c.headers, r.Header), append(c.paths, r.URL.Path)
		c.mu.Unlock()
		if answer != nil && answer(n, w, r) {
			return
		}
		c.take(t, r)
	}))
	t.Cleanup(s.Close)
	return c, s.URL
}

func (c *received) take(t *testing.T, r *http.Request) {
	t.Helper()
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			t.Error(err)
			return
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.URL.Path == "/v1/metrics" {
		var d metricspb.MetricsData
		if err := proto.Unmarshal(b, &d); err != nil {
			t.Error(err)
		}
		clear(c.metrics) // they are cumulative
		for _, m := range d.GetResourceMetrics()[0].GetScopeMetrics()[0].GetMetrics() {
			c.metrics[m.GetName()] = m.GetHistogram().GetDataPoints()
		}
		return
	}
	d := &tracepb.TracesData{}
	if err := proto.Unmarshal(b, d); err != nil {
		t.Error(err)
	}
	c.traces = append(c.traces, d)
	for _, rs := range d.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			c.spans = append(c.spans, ss.GetSpans()...)
		}
	}
}

// span is the only span of a name.
func (c *received) span(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var found *tracepb.Span
	var names []string
	for _, s := range c.spans {
		names = append(names, s.GetName())
		if s.GetName() == name {
			if found != nil {
				t.Fatalf("there are two spans %q", name)
			}
			found = s
		}
	}
	if found == nil {
		t.Fatalf("there is no span %q, only %q", name, names)
	}
	return found
}

// values are the attributes of a span or of a measurement.
func values(all []attribute) map[string]any {
	m := map[string]any{}
	for _, a := range all {
		v := a.GetValue()
		switch {
		case v.GetArrayValue() != nil:
			m[a.GetKey()] = v.GetArrayValue().GetValues()[0].GetStringValue()
		case v.GetStringValue() != "":
			m[a.GetKey()] = v.GetStringValue()
		case v.GetIntValue() != 0:
			m[a.GetKey()] = v.GetIntValue()
		case v.GetDoubleValue() != 0:
			m[a.GetKey()] = v.GetDoubleValue()
		default:
			m[a.GetKey()] = v.GetBoolValue()
		}
	}
	return m
}

// environment is that of a test.
func environment(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}
