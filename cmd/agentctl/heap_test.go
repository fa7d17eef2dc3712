package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func percent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// Not parallel: the percentage is the process's.
func TestFirstCollectionComesLateAndTheNextAsUsual(t *testing.T) {
	t.Setenv("GOGC", "")
	usual := debug.SetGCPercent(120)
	defer debug.SetGCPercent(usual)
	putOffCollection()
	if got := percent(); got != startPercent {
		t.Fatalf("percent before the first collection is %d, want %d", got, startPercent)
	}
	deadline := time.Now().Add(patience)
	for runtime.GC(); percent() != 120; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("percent after a collection is %d, want 120 again", percent())
		}
	}
}

func TestGOGCIsObeyed(t *testing.T) {
	t.Setenv("GOGC", "77")
	before := percent()
	putOffCollection()
	if got := percent(); got != before {
		t.Errorf("percent is %d, want %d as before", got, before)
	}
}
