package main

import (
	"runtime"
	"testing"
)

func TestProcessorsAreLimitedUnlessTheEnvironmentSays(t *testing.T) {
	usual := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(usual)
	t.Setenv("GOMAXPROCS", "4")
	if limitProcessors(); runtime.GOMAXPROCS(0) != 4 {
		t.Errorf("%d processors, want the 4 of the environment", runtime.GOMAXPROCS(0))
	}
	t.Setenv("GOMAXPROCS", "")
	if limitProcessors(); runtime.GOMAXPROCS(0) != processors {
		t.Errorf("%d processors, want %d", runtime.GOMAXPROCS(0), processors)
	}
}
