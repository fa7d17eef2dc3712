package runner

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/journal"
)

// cpuTime is the processor time of this process and of those it has waited for.
func cpuTime(b *testing.B) (total time.Duration) {
	b.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return total
}

// BenchmarkAuditLog compares the processor time of writing the audit log of a run of 20 turns
// with that of the whole run.
func BenchmarkAuditLog(b *testing.B) {
	const turns = 20
	dir := b.TempDir()
	var script strings.Builder
	for i := range turns {
		fmt.Fprintf(&script, "- say: turn %d\n  calls: [{tool: bash, args: {command: 'seq %d 400'}}]\n", i, i)
	}
	write(b, filepath.Join(dir, "m", "all.yaml"), agent("tools: [{name: bash}]\nloopGuard: {identicalCalls: 0, cycles: 0, stalledSteps: 0}", script.String()+"- say: done\n"))
	write(b, filepath.Join(dir, "w", "f"), "x\n")
	var runs, logs time.Duration
	for n := 0; b.Loop(); n++ {
		before := cpuTime(b)
		out, err := Run(b.Context(), RunOptions{
			Paths: []string{filepath.Join(dir, "m")}, Prompt: "go", Workspace: filepath.Join(dir, "w"), State: filepath.Join(dir, "state"), Approve: "all", AllowUnsandboxed: true, Version: "bench",
		})
		if err != nil || out.ExitCode() != 0 || len(out.Result().ToolCalls) != turns {
			b.Fatalf("%v %+v", err, out)
		}
		runs += cpuTime(b) - before
		var lines [][]byte
		if _, err := journal.Check(b.Context(), out.Journal, func(l journal.Line) error {
			lines = append(lines, append([]byte(nil), l.Text...))
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		const times = 20 // the clock of processor time is coarse
		before = cpuTime(b)
		for i := range times {
			t := trail.New(filepath.Join(dir, "state", "runs", filepath.Base(out.Journal)), nil, nil)
			for _, l := range lines {
				if err := t.Line(l); err != nil {
					b.Fatal(err)
				}
			}
			if err := t.Settle(); err != nil {
				b.Fatal(err)
			}
			_ = i
		}
		logs += (cpuTime(b) - before) / times
	}
	b.ReportMetric(runs.Seconds()*1000/float64(b.N), "cpu-ms/run")
	b.ReportMetric(logs.Seconds()*1000/float64(b.N), "cpu-ms/log")
	b.ReportMetric(100*logs.Seconds()/runs.Seconds(), "%cpu")
}
