package shell

import (
	"encoding/json"
	"os/exec"
	"slices"
	"testing"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

// BenchmarkCommand compares a call with the same command started by os/exec,
// both interleaved, and reports the medians.
func BenchmarkCommand(b *testing.B) {
	tool := newBash(b, grace).tool()
	call := &sdk.Call{Workspace: b.TempDir()}
	args := json.RawMessage(`{"command":"true"}`)
	var plain, ours []time.Duration
	for b.Loop() {
		start := time.Now()
		cmd := exec.Command("bash", "-c", "--", "true")
		if _, err := cmd.CombinedOutput(); err != nil {
			b.Fatal(err)
		}
		plain = append(plain, time.Since(start))
		start = time.Now()
		if res, err := tool.Run(b.Context(), call, args); err != nil || res.IsError {
			b.Fatal(res, err)
		}
		ours = append(ours, time.Since(start))
	}
	b.ReportMetric(median(plain), "plain-µs")
	b.ReportMetric(median(ours), "ours-µs")
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Nanoseconds()) / 1e3
}
