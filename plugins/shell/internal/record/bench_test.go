package record

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkNotified measures what a write and an execution take more if they are recorded:
// many of each by one bash, with and without, interleaved.
func BenchmarkNotified(b *testing.B) {
	if err := Check(); err != nil {
		b.Skip(err)
	}
	const many = 200
	file := b.TempDir() + "/file"
	for name, script := range map[string]string{
		"write":   fmt.Sprintf("for ((i=0;i<%d;i++)); do : > %s; done", many, file),
		"execute": fmt.Sprintf("for ((i=0;i<%d;i++)); do /bin/true; done", many),
	} {
		b.Run(name, func(b *testing.B) {
			var took [2][]time.Duration
			for b.Loop() {
				for i := range 2 {
					cmd := exec.CommandContext(b.Context(), "/bin/bash", "-c", script)
					var w *Watch
					if i == 1 {
						var err error
						if w, err = Prepare(cmd, Options{Scope: Everything, Shell: true, Rights: &Rights{}}); err != nil {
							b.Fatal(err)
						}
					}
					start := time.Now()
					if err := cmd.Start(); err != nil {
						b.Fatal(err)
					}
					if w != nil {
						if err := w.Begin(); err != nil {
							b.Fatal(err)
						}
					}
					if err := cmd.Wait(); err != nil {
						b.Fatal(err)
					}
					took[i] = append(took[i], time.Since(start))
					w.End(time.Second)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric((least(took[1])-least(took[0]))/many, "least-µs")
			b.ReportMetric((middle(took[1])-middle(took[0]))/many, "more-µs")
		})
	}
}

func least(d []time.Duration) float64 { return float64(slices.Min(d).Nanoseconds()) / 1e3 }

func middle(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Nanoseconds()) / 1e3
}
