package events

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkOpen is what a full store adds to the start and the stop of a server.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "events.jsonl")
	s := open(b, Options{Path: path, Now: time.Now})
	for i := range DefaultLimit {
		s.Record(about(fmt.Sprintf("run-of-some-agent-%d", i), "ReferenceNotFound", `model "script" not found in namespace default`))
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s = open(b, Options{Path: path, Now: time.Now})
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	if n := len(s.all()); n != DefaultLimit {
		b.Fatalf("%d events", n)
	}
}

// BenchmarkRecord is what a controller waits for when it records an event.
func BenchmarkRecord(b *testing.B) {
	s := open(b, Options{Path: filepath.Join(b.TempDir(), "events.jsonl"), Now: time.Now})
	i := 0
	for b.Loop() {
		i++
		s.Record(about(fmt.Sprint(i), "Accepted", "Running"))
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
