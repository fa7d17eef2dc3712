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

// BenchmarkBound compares bound calls with unbound ones, interleaved: one that writes
// nothing, one that writes, and one that needs a shell of its own.
func BenchmarkBound(b *testing.B) {
	needLandlock(b)
	root := filesIn(b, map[string]string{"a": "one\n"})
	for name, tc := range map[string]struct {
		command string
		binding *sdk.Binding
	}{
		"reads":   {"cat a", bound(root, "cat")},
		"writes":  {"cat a > new; rm new", bound(root, "cat rm", "write new", "remove new")},
		"network": {"cat a", &sdk.Binding{Programs: []string{"cat"}, Network: true}},
	} {
		b.Run(name, func(b *testing.B) {
			ours := newBash(b, grace)
			tool, args := ours.tool(), json.RawMessage(`{"command":"`+tc.command+`"}`)
			var took [2][]time.Duration
			for b.Loop() {
				for i, binding := range []*sdk.Binding{nil, tc.binding} {
					start := time.Now()
					if res, err := tool.Run(b.Context(), &sdk.Call{Workspace: root, Binding: binding}, args); err != nil || res.IsError || *res.ExitCode != 0 {
						b.Fatal(res, err)
					}
					took[i] = append(took[i], time.Since(start))
					ours.preparing.Wait()
					time.Sleep(3 * time.Millisecond) // the model thinks
				}
			}
			b.ReportMetric(median(took[0]), "unbound-µs")
			b.ReportMetric(median(took[1]), "bound-µs")
			b.ReportMetric(median(took[1])-median(took[0]), "over-µs")
		})
	}
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Nanoseconds()) / 1e3
}
