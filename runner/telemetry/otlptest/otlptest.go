// Package otlptest is a collector for tests, which writes down what it receives.
package otlptest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector receives OTLP over HTTP. Close it.
type Collector struct {
	// URL is its OTEL_EXPORTER_OTLP_ENDPOINT.
	URL string

	server *httptest.Server
	mu     sync.Mutex
	lines  io.Writer
}

// Start starts a collector that writes each span and each measurement as a line.
func Start(lines io.Writer) *Collector {
	c := &Collector{lines: lines}
	c.server = httptest.NewServer(c)
	c.URL = c.server.URL
	return c
}

// Close ends it.
func (c *Collector) Close() { c.server.Close() }

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var text string
	if err == nil {
		text, err = decoded(r.URL.Path, body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := io.WriteString(c.lines, text); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func decoded(path string, body []byte) (string, error) {
	var b strings.Builder
	switch path {
	case "/v1/traces":
		var d tracepb.TracesData
		if err := proto.Unmarshal(body, &d); err != nil {
			return "", err
		}
		for _, rs := range d.GetResourceSpans() {
			for _, ss := range rs.GetScopeSpans() {
				for _, s := range ss.GetSpans() {
					took := time.Duration(s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano()) //nolint:gosec // a span of time
					fmt.Fprintf(&b, "span %q trace=%x span=%x parent=%x took=%s%s%s\n", s.GetName(), s.GetTraceId(), s.GetSpanId(), s.GetParentSpanId(), took,
						attributes(rs.GetResource().GetAttributes()), attributes(s.GetAttributes()))
				}
			}
		}
	case "/v1/metrics":
		var d metricspb.MetricsData
		if err := proto.Unmarshal(body, &d); err != nil {
			return "", err
		}
		for _, rm := range d.GetResourceMetrics() {
			for _, sm := range rm.GetScopeMetrics() {
				for _, m := range sm.GetMetrics() {
					for _, p := range m.GetHistogram().GetDataPoints() {
						fmt.Fprintf(&b, "metric %q count=%d sum=%g%s\n", m.GetName(), p.GetCount(), p.GetSum(), attributes(p.GetAttributes()))
					}
				}
			}
		}
	default:
		return "", fmt.Errorf("no signal is sent to %s", path)
	}
	return b.String(), nil
}

func attributes(all []*commonpb.KeyValue) string {
	var b strings.Builder
	for _, a := range all {
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			fmt.Fprintf(&b, " %s=%s", a.GetKey(), v.StringValue)
		case *commonpb.AnyValue_IntValue:
			fmt.Fprintf(&b, " %s=%d", a.GetKey(), v.IntValue)
		case *commonpb.AnyValue_DoubleValue:
			fmt.Fprintf(&b, " %s=%g", a.GetKey(), v.DoubleValue)
		case *commonpb.AnyValue_BoolValue:
			fmt.Fprintf(&b, " %s=%t", a.GetKey(), v.BoolValue)
		case *commonpb.AnyValue_ArrayValue:
			for _, one := range v.ArrayValue.GetValues() {
				fmt.Fprintf(&b, " %s=%s", a.GetKey(), one.GetStringValue())
			}
		}
	}
	return b.String()
}
