package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"agentctl.dev/agentctl/api/view"
)

// roundTrip is a transport of a test.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func oneRun(c *Client, id string) {
	started(id).request().response("stop").finish(view.Succeeded, "Completed").into(c.Begin(RunOptions{ID: id}))
}

func TestACollectorThatHangsCostsOneSecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		c := Open(Options{Getenv: environment("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"), transport: hang})
		begin := time.Now()
		for i := range 3 * maxQueue { // two spans each
			oneRun(c, fmt.Sprint("run-", i))
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("runs have waited %s for the collector", took)
		}
		time.Sleep(3 * time.Second) // the senders hang
		begin = time.Now()
		warnings := c.Close(t.Context())
		if took := time.Since(begin); took > CloseTime {
			t.Errorf("Close took %s", took)
		}
		if len(warnings) != 2 || !strings.Contains(warnings[0], fmt.Sprintf("telemetry: %d of %d spans were not delivered to http://collector:4318/v1/traces: ", 6*maxQueue, 6*maxQueue)) ||
			!strings.Contains(warnings[1], "1 of 1 reports of metrics were not delivered to http://collector:4318/v1/metrics: it did not answer in time") {
			t.Errorf("warnings: %q", warnings)
		}
	})
}

func TestASecondSignalEndsTheWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Open(Options{Getenv: environment("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector:4318"), transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})})
		oneRun(c, "fixer-1")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begin := time.Now()
		if w := c.Close(ctx); len(w) != 1 || time.Since(begin) != 0 {
			t.Errorf("after %s: %q", time.Since(begin), w)
		}
	})
}

func TestWhatACollectorRefusesIsSaidOnce(t *testing.T) {
	for name, test := range map[string]struct {
		answer   func(n int, w http.ResponseWriter) bool // true: it was answered
		spans    int
		requests int
		want     string
	}{
		"an error of the server": {func(_ int, w http.ResponseWriter) bool { w.WriteHeader(500); return true }, 0, 1, "2 of 2 spans were not delivered to URL: it answered 500 Internal Server Error"},
		"no access":              {func(_ int, w http.ResponseWriter) bool { w.WriteHeader(403); return true }, 0, 1, "2 of 2 spans were not delivered to URL: it answered 403 Forbidden"},
		"a redirect": {func(_ int, w http.ResponseWriter) bool {
			w.Header().Set("Location", "/v1/traces")
			w.WriteHeader(307)
			return true
		}, 0, 1, "2 of 2 spans were not delivered to URL: it answered 307 Temporary Redirect"},
		"no time, at first": {func(n int, w http.ResponseWriter) bool {
			if n == 1 {
				w.WriteHeader(503)
			}
			return n == 1
		}, 2, 2, ""},
		"a part": {func(_ int, w http.ResponseWriter) bool {
			inner := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
			_, _ = w.Write(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), inner))
			return false
		}, 2, 1, "1 of 2 spans were not delivered to URL: it rejected them"},
		"an answer that is none": {func(_ int, w http.ResponseWriter) bool { _, _ = w.Write([]byte("\xff\xff\xff hello")); return false }, 2, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, url := collector(t, func(n int, w http.ResponseWriter, _ *http.Request) bool { return test.answer(n, w) })
			c := open(t, url, "OTEL_METRICS_EXPORTER", "none")
			oneRun(c, "fixer-1")
			if name == "no time, at first" { // while the run goes on, it is tried again
				c.sendBatch(c.delivery(c.settings.traces, nil), c.take())
			}
			var want []string
			if test.want != "" {
				want = []string{"telemetry: " + strings.Replace(test.want, "URL", url+"/v1/traces", 1)}
			}
			closed(t, c, want...)
			if len(got.spans) != test.spans || got.requests != test.requests {
				t.Errorf("%d spans in %d requests", len(got.spans), got.requests)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	c := open(t, "http://user:password-in-it@127.0.0.1:1", "OTEL_METRICS_EXPORTER", "none", "OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer token-in-it")
	oneRun(c, "fixer-1")
	w := c.Close(t.Context())
	if len(w) != 1 || !strings.Contains(w[0], "2 of 2 spans were not delivered to http://user:xxxxx@127.0.0.1:1/v1/traces: dial tcp") || strings.Contains(w[0], "-in-it") {
		t.Errorf("warnings: %q", w)
	}
}

func TestWhatIsAskedForIsSent(t *testing.T) {
	got, url := collector(t, nil)
	c := Open(Options{Getenv: environment(
		"OTEL_EXPORTER_OTLP_ENDPOINT", url+"/base/",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url+"/own?key=1",
		"OTEL_EXPORTER_OTLP_HEADERS", "X-Common=1",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "Authorization=Bearer%20abc, X-Scope = team",
		"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip",
		"OTEL_SERVICE_NAME", "reviews", "OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=ci%20run",
		"OTEL_METRICS_EXPORTER", "none",
	), Version: "v1", Instance: "one"})
	oneRun(c, "fixer-1")
	closed(t, c)
	if h := got.headers[0]; got.paths[0] != "/own" || h.Get("Authorization") != "Bearer abc" || h.Get("X-Scope") != "team" || h.Get("X-Common") != "" || h.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("%s %v", got.paths[0], h)
	}
	r := values(got.traces[0].GetResourceSpans()[0].GetResource().GetAttributes())
	if r["service.name"] != "reviews" || r["deployment.environment.name"] != "ci run" {
		t.Errorf("resource: %v", r)
	}
	if s, errs := read(environment("OTEL_EXPORTER_OTLP_ENDPOINT", url+"/base/"), "", ""); len(errs) > 0 || s.metrics.url != url+"/base/v1/metrics" || s.traces.url != url+"/base/v1/traces" {
		t.Errorf("%v %v", s, errs)
	}
	if s, _ := read(environment("OTEL_EXPORTER_OTLP_ENDPOINT", url, "TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"), "", ""); s.traces != nil || s.metrics == nil {
		t.Error("the caller's trace is not sampled, and neither are our spans")
	}
}

func TestWhatCannotBeHonouredIsSaid(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for reason, test := range map[string]struct {
		set  []string
		want string
	}{
		"no address":               {[]string{endpoint, "localhost:4318"}, endpoint + " is not a URL like http://localhost:4318"},
		"another protocol":         {[]string{endpoint, "http://x:1", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported, only http/protobuf"},
		"another exporter":         {[]string{endpoint, "http://x:1", "OTEL_TRACES_EXPORTER", "zipkin"}, "OTEL_TRACES_EXPORTER=zipkin is not supported, only otlp and none"},
		"a header that breaks":     {[]string{endpoint, "http://x:1", "OTEL_EXPORTER_OTLP_HEADERS", "a=secret%0d%0ab: c"}, `OTEL_EXPORTER_OTLP_HEADERS: the header "a" cannot be sent`},
		"headers that are none":    {[]string{endpoint, "http://x:1", "OTEL_EXPORTER_OTLP_HEADERS", "secret"}, "OTEL_EXPORTER_OTLP_HEADERS: it is a list of key=value, with commas between them and percent-encoded values"},
		"a time that is none":      {[]string{endpoint, "http://x:1", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "10s"}, `OTEL_EXPORTER_OTLP_TRACES_TIMEOUT is a number of milliseconds, not "10s"`},
		"a file that is not there": {[]string{endpoint, "http://x:1", "OTEL_EXPORTER_OTLP_CERTIFICATE", "/none"}, "OTEL_EXPORTER_OTLP_CERTIFICATE: open /none: no such file or directory"},
		"a parent that is none":    {[]string{endpoint, "http://127.0.0.1:1", "TRACEPARENT", "00-zz-zz-01"}, "TRACEPARENT is not a trace context of the W3C: the run begins a trace of its own"},
		"a parent of zeros":        {[]string{endpoint, "http://127.0.0.1:1", "TRACEPARENT", "00-00000000000000000000000000000000-b7ad6b7169203331-01"}, "TRACEPARENT is not a trace context of the W3C: the run begins a trace of its own"},
	} {
		c := Open(Options{Getenv: environment(test.set...)})
		if w := c.Close(t.Context()); len(w) != 1 || w[0] != "telemetry: "+test.want {
			t.Errorf("%s: %q, want %q", reason, w, test.want)
		}
	}
}

func TestTheSeriesAreBounded(t *testing.T) {
	m := newMeter(begun)
	for i := range 2 * maxSeries {
		m.add(metricTokens, 1, text("agent", fmt.Sprint(i)))
	}
	total := uint64(0)
	for _, p := range m.metrics(begun)[0].GetHistogram().GetDataPoints() {
		total += p.GetCount()
	}
	if n := len(m.series); n > maxSeries+1 || total != 2*maxSeries {
		t.Errorf("%d series of %d measurements", n, total)
	}
}

func FuzzPartial(f *testing.F) {
	f.Add([]byte{0x0a, 0x02, 0x08, 0x01})
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, answer []byte) {
		if n := partial(answer); n < 0 {
			t.Errorf("%d items were rejected", n)
		}
	})
}
