package main

import (
	"runtime/debug"
	"testing"
)

// Not parallel: the percentage is the process's.
func TestTheFirstCollectionOfTheToolsComesLate(t *testing.T) {
	t.Setenv("GOGC", "")
	usual := debug.SetGCPercent(120)
	defer debug.SetGCPercent(usual)
	putOffCollection()
	if got := debug.SetGCPercent(120); got != startPercent {
		t.Errorf("percent before the first collection is %d, want %d", got, startPercent)
	}
	t.Setenv("GOGC", "77")
	putOffCollection()
	if got := debug.SetGCPercent(120); got != 120 {
		t.Errorf("GOGC is not obeyed: percent is %d", got)
	}
}
