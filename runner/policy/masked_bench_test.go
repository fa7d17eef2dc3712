package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkMasked is what 10,000 files cost before the first call, by each way in
// which a policy hides some.
func BenchmarkMasked(b *testing.B) {
	const files = 10_000
	for name, policy := range ways {
		b.Run(name, func(b *testing.B) {
			e := engine(b, policy)
			names := make([]string, files)
			for i := range names {
				names[i] = fmt.Sprintf("pkg%d/part%d/file%d.go", i/1000, i/50, i)
				file := filepath.Join(e.context.Workspace.Root, names[i])
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if got, err := e.Masked(b.Context(), names); err != nil || len(got) != 0 {
					b.Fatal(got, err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N*files), "µs/file")
		})
	}
}
