package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseBenchmarksReadsWhatGoTestPrints(t *testing.T) {
	const out = `goos: linux
pkg: a/journal
BenchmarkAppend-4   	  500000	      2500 ns/op	 400000 events/s
BenchmarkAppend-4   	  500000	      2600 ns/op	 390000 events/s
PASS
pkg: a/policy
BenchmarkDecide/rules=10/plain-4	 10	 20 ns/op
Benchmark words
ok  	a/policy	4.8s
`
	want := map[metricKey][]float64{
		{"a/journal", "BenchmarkAppend", "ns/op"}:               {2500, 2600},
		{"a/journal", "BenchmarkAppend", "events/s"}:            {400000, 390000},
		{"a/policy", "BenchmarkDecide/rules=10/plain", "ns/op"}: {20},
	}
	if diff := cmp.Diff(want, parseBenchmarks(out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The names stand in strings: a benchmark that is renamed must be missed here,
// not only when somebody measures.
func TestEveryPartHasItsBenchmark(t *testing.T) {
	for _, p := range append(parts(), contained()...) {
		top, _, _ := strings.Cut(p.bench, "/")
		files, err := filepath.Glob(filepath.Join("../..", p.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "func "+top+"(b *testing.B)")
		}
		if !found {
			t.Errorf("%s: no %s in %s", p.name, top, p.pkg)
		}
	}
	args := partArgs(parts())
	if len(args) != 5 || strings.Count(args[0], "BenchmarkDecide") != 1 {
		t.Errorf("go test is told %v, want each benchmark and package once", args)
	}
}

func TestOnlyAPartThatTheMachineNeedNotHaveMayBeMissing(t *testing.T) {
	there := part{name: "there", unit: "µs", pkg: "a", bench: "BenchmarkA", metric: "ns/op", per: 1e-3, goal: atMost(3)}
	box := part{name: "box", unit: "ms", pkg: "a", bench: "BenchmarkB", metric: "p50-ms", per: 1, goal: atMost(3), optional: true}
	metrics := map[metricKey][]float64{there.key(): {1000, 2000, 4000}}
	var r report
	r.begin("held", 1)
	if err := r.parts([]part{there, box}, metrics); err != nil {
		t.Fatal(err)
	}
	if len(r.Figures) != 1 || *r.Figures[0].Agentctl != 2 || !r.Figures[0].Goal.Met {
		t.Errorf("figures = %+v", r.Figures)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "held: box: not measured") {
		t.Errorf("notes = %q", r.Notes)
	}
	box.optional = false
	if err := r.parts([]part{box}, metrics); err == nil || !strings.Contains(err.Error(), "BenchmarkB") {
		t.Errorf("error = %v", err)
	}
}
