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
}

const modulePath = "agentctl.dev/agentctl"

func parts() []part {
	const ns = "ns/op"
	return []part{
		{"journal, buffered", "events/s", "runner/journal", "BenchmarkAppend", "events/s", 1, atLeast(100_000)},
		{"encode a part of 4 KB", "µs", "api/message", "BenchmarkPart/encode/tool", ns, 1e-3, atMost(10)},
		{"decode a part of 4 KB", "µs", "api/message", "BenchmarkPart/decode/tool", ns, 1e-3, atMost(10)},
		{"policy decision, 10 rules", "µs", "runner/policy", "BenchmarkDecide/rules=10/plain", ns, 1e-3, nil},
		{"same, a shell command", "µs", "runner/policy", "BenchmarkDecide/rules=10/shell", ns, 1e-3, nil},
		{"policy decision, 1,000 rules", "µs", "runner/policy", "BenchmarkDecide/rules=1000/plain", ns, 1e-3, atMost(50)},
		{"same, a shell command", "µs", "runner/policy", "BenchmarkDecide/rules=1000/shell", ns, 1e-3, atMost(250)},
		{"plugin call of 1 KB p50", "ms", "plugins/host", "BenchmarkWarmCall1KB", "p50-µs", 1e-3, atMost(0.4)},
	}
}

// measureParts asks the benchmarks one package after the other.
func measureParts(ctx context.Context, b *bench, reps int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	args := []string{"test", "-p=1", "-run=^$", fmt.Sprintf("-count=%d", reps), "-benchtime=300ms"}
	args = append(args, partArgs(parts())...)
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, tail(out))
	}
	metrics := parseBenchmarks(string(out))
	for _, p := range parts() {
		values := metrics[p.key()]
		if len(values) == 0 {
			return fmt.Errorf("no %s of %s in the output of go test:\n%s", p.metric, p.bench, tail(out))
		}
		b.report.alone(p.name, p.unit, percentile(values, 50)*p.per, p.goal)
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
