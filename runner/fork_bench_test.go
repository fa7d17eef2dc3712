package runner

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkFork forks a run of 300 turns, each with a command that writes, before its last
// step. What has to stay below 0.3 s is the time until the new run is there.
func BenchmarkFork(b *testing.B) {
	const turns = 300
	dir := b.TempDir()
	var script strings.Builder
	for i := range turns {
		fmt.Fprintf(&script, "- say: turn %d\n  calls: [{tool: bash, args: {command: 'seq %d 400; echo %d >> f'}}]\n", i, i, i)
	}
	write(b, filepath.Join(dir, "m", "all.yaml"), agent("tools: [{name: bash}]\nlimits: {maxSteps: 400}\nloopGuard: {identicalCalls: 0, cycles: 0, stalledSteps: 0}", script.String()+"- say: done\n"))
	write(b, filepath.Join(dir, "w", "f"), "x\n")
	options := RunOptions{State: filepath.Join(dir, "state"), Approve: "all", AllowUnsandboxed: true, Version: "bench"}
	first := options
	first.Paths, first.Prompt, first.Workspace = []string{filepath.Join(dir, "m")}, "go", filepath.Join(dir, "w")
	out, err := Run(b.Context(), first)
	if err != nil || out.ExitCode() != 0 {
		b.Fatalf("%v %+v", err, out)
	}
	var made time.Duration
	for b.Loop() {
		begin := time.Now()
		forked, err := Fork(b.Context(), ForkOptions{
			RunOptions: options, Ref: out.Run.ID, At: fmt.Sprint("step/", turns+1), OutsideKept: true,
			Begun: func(string, string) { made += time.Since(begin) },
		})
		if err != nil || forked.ExitCode() != 0 || forked.Run.Steps != turns+1 {
			b.Fatalf("%v %+v", err, forked)
		}
	}
	b.ReportMetric(made.Seconds()*1000/float64(b.N), "ms/fork")
}
