package runner

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// parallel declares an agent with n subagents that work at the same time, each for a time.
func parallel(tb testing.TB, n int, work time.Duration) RunOptions {
	tb.Helper()
	dir := tb.TempDir()
	calls := strings.Repeat("{tool: task, args: {agent: helper, prompt: work}}, ", n)
	text := agent("subagents: [{name: helper}]\nlimits: {maxParallelTools: 16}\nloopGuard: {identicalCalls: 0, cycles: 0, stalledSteps: 0}", "- calls: ["+strings.TrimSuffix(calls, ", ")+"]\n- say: done\n",
		"apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: helper}\nspec: {mode: Subagent, modelRef: {name: helper}, tools: [{name: bash}]}\n",
		fmt.Sprintf("apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: helper}\nspec:\n  provider: scripted\n  scripted:\n    steps:\n    - calls: [{tool: bash, args: {command: sleep %g}}]\n    - say: done\n", work.Seconds()))
	write(tb, filepath.Join(dir, "m", "all.yaml"), text)
	write(tb, filepath.Join(dir, "w", "f"), "x\n")
	return RunOptions{Paths: []string{filepath.Join(dir, "m")}, Prompt: "go", Workspace: filepath.Join(dir, "w"), State: filepath.Join(dir, "state"), Approve: "all", AllowUnsandboxed: true, Version: "bench"}
}

// BenchmarkSubagents compares the wall time of eight subagents that work at the same time
// with that of one, and reports how long a subagent takes from the intent of the call to
// its first model request.
func BenchmarkSubagents(b *testing.B) {
	for range b.N {
		var walls []time.Duration
		for _, n := range []int{1, 8} {
			o := parallel(b, n, time.Second)
			start := time.Now()
			out, err := Run(context.Background(), o)
			if err != nil || out.ExitCode() != 0 {
				b.Fatalf("%v %+v", err, out)
			}
			walls = append(walls, time.Since(start))
			first := firstRequests(b, out, o.State)
			if len(first) != n {
				b.Fatalf("%d subagents have worked, want %d: %s", len(first), n, out.Run.Messages[1].Calls()[0].Result.Text)
			}
			b.ReportMetric(float64(first[len(first)/2].Microseconds())/1000, fmt.Sprintf("ms-to-request-of-%d", n))
		}
		b.ReportMetric(walls[0].Seconds(), "s-one")
		b.ReportMetric(walls[1].Seconds(), "s-eight")
		b.ReportMetric(walls[1].Seconds()/walls[0].Seconds(), "ratio")
	}
}

// firstRequests are the times from the intent of each call to the first request of the run
// that it has started, sorted.
func firstRequests(b *testing.B, out *Outcome, state string) (all []time.Duration) {
	b.Helper()
	began := map[string]time.Time{}
	for e, err := range journal.Read(b.Context(), out.Journal, 0) {
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := e.Data.(event.ToolCall); ok {
			began[e.Call] = e.Time
		}
	}
	below, err := runs.Below(b.Context(), state, out.Run.ID)
	if err != nil {
		b.Fatal(err)
	}
	for _, child := range below {
		var call string
		for e, err := range journal.Read(b.Context(), child.Journal, 0) {
			if err != nil {
				b.Fatal(err)
			}
			if d, ok := e.Data.(event.RunStarted); ok {
				call = d.Parent.Call
			}
			if _, ok := e.Data.(event.ModelRequest); ok {
				all = append(all, e.Time.Sub(began[call]))
				break
			}
		}
	}
	slices.Sort(all)
	return all
}
