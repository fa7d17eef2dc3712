package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// part is a figure of a Go benchmark that stands beside the code it measures.
type part struct {
	name, unit         string
	pkg, bench, metric string
	// per turns the metric into the unit: value = metric × per.
	per  float64
	goal *goal
	// optional parts are left out where the machine has not what they need.
	optional bool
}

const modulePath = "agentctl.dev/agentctl"

func parts() []part {
	const ns = "ns/op"
	return []part{
		{"journal, buffered", "events/s", "runner/journal", "BenchmarkAppend", "events/s", 1, atLeast(100_000), false},
		{"encode a part of 4 KB", "µs", "api/message", "BenchmarkPart/encode/tool", ns, 1e-3, atMost(10), false},
		{"decode a part of 4 KB", "µs", "api/message", "BenchmarkPart/decode/tool", ns, 1e-3, atMost(10), false},
		{"policy decision, 10 rules", "µs", "runner/policy", "BenchmarkDecide/rules=10/plain", ns, 1e-3, nil, false},
		{"same, a shell command", "µs", "runner/policy", "BenchmarkDecide/rules=10/shell", ns, 1e-3, nil, false},
		{"policy decision, 1,000 rules", "µs", "runner/policy", "BenchmarkDecide/rules=1000/plain", ns, 1e-3, atMost(50), false},
		{"same, a shell command", "µs", "runner/policy", "BenchmarkDecide/rules=1000/shell", ns, 1e-3, atMost(250), false},
		{"plugin call of 1 KB p50", "ms", "plugins/host", "BenchmarkWarmCall1KB", "p50-µs", 1e-3, atMost(0.4), false},
	}
}

// contained are the parts of isolation.
func contained() []part {
	const (
		boxed     = "runner/sandbox"
		shell     = "plugins/shell"
		record    = "plugins/shell/internal/record"
		container = "runner/sandbox/container"
		plain     = "plain-p50-ms"
		held      = "sandbox-p50-ms"
		middle    = "p50-ms"
	)
	return []part{
		{"plugin, cold to the answer of a call, plain p50", "ms", boxed, "BenchmarkPluginInSandbox", plain, 1, nil, false},
		{"same, in a sandbox of its own p50", "ms", boxed, "BenchmarkPluginInSandbox", held, 1, atMost(30), false},
		{"command, plain p50", "ms", boxed, "BenchmarkCommandInResidentSandbox", plain, 1, nil, false},
		{"what a sandbox that stands adds to it p50", "ms", boxed, "BenchmarkCommandInResidentSandbox", "over-p50-ms", 1, atMost(1.5), false},
		{"plugin call of 1 KB in a sandbox p50", "ms", boxed, "BenchmarkWarmCallInSandbox", held, 1, atMost(0.4), false},
		{"calls of 1 KB by 16 callers", "calls/s", "plugins/host", "BenchmarkCalls/16_callers", "calls/s", 1, atLeast(5000), false},
		{"shell call that writes nothing, unbound p50", "ms", shell, "BenchmarkBound/reads", "unbound-µs", 1e-3, nil, true},
		{"what it takes more if it is bound p50", "ms", shell, "BenchmarkBound/reads", "over-µs", 1e-3, atMost(0.2), true},
		{"shell call that writes, unbound p50", "ms", shell, "BenchmarkBound/writes", "unbound-µs", 1e-3, nil, true},
		{"what it takes more if it is bound p50", "ms", shell, "BenchmarkBound/writes", "over-µs", 1e-3, atMost(1.5), true},
		{"what a bound call takes more for a write, with its record p50", "ms", record, "BenchmarkNotified/write", "more-µs", 1e-3, nil, true},
		{"same for a program that it executes p50", "ms", record, "BenchmarkNotified/execute", "more-µs", 1e-3, nil, true},
		{"container, cold to the answer of a call p50", "ms", container, "BenchmarkColdStart", middle, 1, atMost(200), true},
		{"plugin call of 1 KB in a container p50", "ms", container, "BenchmarkWarmCall", middle, 1, atMost(0.4), true},
	}
}

// measureParts asks the benchmarks of some parts one package after the other.
func measureParts(all []part, benchtime time.Duration) func(context.Context, *bench, int) error {
	return func(ctx context.Context, b *bench, reps int) error { return askParts(ctx, b, reps, all, benchtime) }
}

func askParts(ctx context.Context, b *bench, reps int, all []part, benchtime time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	args := []string{"test", "-p=1", "-run=^$", fmt.Sprintf("-count=%d", reps), fmt.Sprintf("-benchtime=%v", benchtime)}
	args = append(args, partArgs(all)...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, tail(out))
	}
	if err := b.report.parts(all, parseBenchmarks(string(out))); err != nil {
		return fmt.Errorf("%w in the output of go test:\n%s", err, tail(out))
	}
	return nil
}

// parts adds the figures of benchmarks. One that is not there is an error, unless
// the machine need not have what it measures.
func (r *report) parts(all []part, metrics map[metricKey][]float64) error {
	for _, p := range all {
		values := metrics[p.key()]
		switch {
		case len(values) > 0:
			r.alone(p.name, p.unit, percentile(values, 50)*p.per, p.goal)
		case p.optional:
			r.note("%s: not measured, this machine has not what it needs", p.name)
		default:
			return fmt.Errorf("no %s of %s", p.metric, p.bench)
		}
	}
	return nil
}

// partArgs names the benchmarks and packages of all parts, each once.
func partArgs(all []part) []string {
	var names, packages []string
	for _, p := range all {
		top, _, _ := strings.Cut(p.bench, "/")
		names = append(names, top)
		packages = append(packages, modulePath+"/"+p.pkg)
	}
	slices.Sort(names)
	slices.Sort(packages)
	return append([]string{"-bench=^(" + strings.Join(slices.Compact(names), "|") + ")$"}, slices.Compact(packages)...)
}

// metricKey is one metric of one benchmark.
type metricKey struct{ pkg, bench, metric string }

func (p part) key() metricKey { return metricKey{modulePath + "/" + p.pkg, p.bench, p.metric} }

// parseBenchmarks reads what go test prints: lines "pkg: P" and
// "BenchmarkX-4  1000  2500 ns/op  400 events/s".
func parseBenchmarks(out string) map[metricKey][]float64 {
	found := map[metricKey][]float64{}
	pkg := ""
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = strings.TrimSpace(name)
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := fields[0]
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i] // the number of processors
		}
		for i := 2; i+1 < len(fields); i += 2 {
			var value float64
			if _, err := fmt.Sscan(fields[i], &value); err == nil {
				key := metricKey{pkg, name, fields[i+1]}
				found[key] = append(found[key], value)
			}
		}
	}
	return found
}
