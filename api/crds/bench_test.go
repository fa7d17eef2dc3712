package crds

import "testing"

func BenchmarkDecodeKind(b *testing.B) {
	for i := range bundle {
		b.Run(bundle[i].kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decodeObject(bundle[i].schema); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkApplyDefaults(b *testing.B) {
	Kind("Agent")
	b.ReportAllocs()
	for b.Loop() {
		ApplyDefaults("Agent", map[string]any{"spec": map[string]any{"modelRef": map[string]any{"name": "m"}}})
	}
}
