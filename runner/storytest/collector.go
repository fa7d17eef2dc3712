package storytest

import (
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"agentctl.dev/agentctl/runner/telemetry/otlptest"
)

// collector starts an OpenTelemetry collector and sets $COLLECTOR: one that writes what it
// receives into a file, a line for each span and each measurement, or one that hangs, or
// answers 500 to everything.
func collector(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: collector FILE|hangs|fails")
	}
	switch args[0] {
	case "hangs":
		over := make(chan struct{})
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}))
		ts.Defer(func() { close(over); s.Close() })
		ts.Setenv("COLLECTOR", s.URL)
	case "fails":
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
		ts.Defer(s.Close)
		ts.Setenv("COLLECTOR", s.URL)
	default:
		f, err := os.Create(ts.MkAbs(args[0]))
		ts.Check(err)
		c := otlptest.Start(f)
		ts.Defer(func() { c.Close(); _ = f.Close() }) // it is only read by name
		ts.Setenv("COLLECTOR", c.URL)
	}
}
