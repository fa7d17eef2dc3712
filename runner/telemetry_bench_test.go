package runner

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/runner/telemetry"
)

// BenchmarkTelemetry compares a run of 20 turns that sends its spans and metrics with one
// that sends nothing, by turns. What is sent at the end is part of the run.
func BenchmarkTelemetry(b *testing.B) {
	const turns = 20
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // what comes of it is no part of the measure
	}))
	defer collector.Close()
	dir := b.TempDir()
	var script strings.Builder
	for i := range turns {
		fmt.Fprintf(&script, "- say: turn %d\n  calls: [{tool: bash, args: {command: 'seq %d 400'}}]\n", i, i)
	}
	write(b, filepath.Join(dir, "m", "all.yaml"), agent("tools: [{name: bash}]\nloopGuard: {identicalCalls: 0, cycles: 0, stalledSteps: 0}", script.String()+"- say: done\n"))
	write(b, filepath.Join(dir, "w", "f"), "x\n")
	var walls [2][]time.Duration
	for n := 0; b.Loop(); n++ {
		for i := range walls {
			on := (i + n) % 2
			begin := time.Now()
			var c *telemetry.Client
			if on == 1 {
				c = telemetry.Open(telemetry.Options{Version: "bench", Getenv: func(name string) string {
					return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}[name]
				}})
			}
			out, err := Run(b.Context(), RunOptions{
				Paths: []string{filepath.Join(dir, "m")}, Prompt: "go", Workspace: filepath.Join(dir, "w"), State: filepath.Join(dir, "state"), Approve: "all", AllowUnsandboxed: true, Version: "bench",
				Telemetry: c,
			})
			lost := c.Close(b.Context())
			walls[on] = append(walls[on], time.Since(begin))
			if err != nil || out.ExitCode() != 0 || len(out.Result().ToolCalls) != turns || len(lost) > 0 {
				b.Fatalf("%v %+v %q", err, out, lost)
			}
		}
	}
	for i := range walls {
		slices.Sort(walls[i])
	}
	off, on := walls[0][len(walls[0])/2], walls[1][len(walls[1])/2]
	b.ReportMetric(off.Seconds()*1000, "ms/run-off")
	b.ReportMetric(on.Seconds()*1000, "ms/run-on")
	b.ReportMetric(100*(on.Seconds()/off.Seconds()-1), "%more")
	b.ReportMetric(100*(walls[1][0].Seconds()/walls[0][0].Seconds()-1), "%more-fastest")
}
