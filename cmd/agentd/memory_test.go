package main

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryIsGivenBackWhenABusyTimeIsOver(t *testing.T) {
	const mb = 1 << 20
	var m thrift
	for i, c := range []struct {
		reason    string
		allocated uint64
		due       bool
	}{
		{"the start", 60 * mb, false},
		{"it is over", 61 * mb, true},
		{"nothing happens", 62 * mb, false},
		{"little by little", 65 * mb, false},
		{"a busy time", 90 * mb, false},
		{"it goes on", 130 * mb, false},
		{"it is over", 131 * mb, true},
		{"nothing happens", 131 * mb, false},
		{"little by little", 134 * mb, false},
		{"still", 137 * mb, false},
		{"still", 140 * mb, false},
		{"still", 143 * mb, false},
		{"it has come to enough", 147*mb - 1, false},
		{"it has come to enough", 148 * mb, true},
	} {
		due := m.due(c.allocated)
		if due != c.due {
			t.Errorf("%d: %s: due %v, want %v", i, c.reason, due, c.due)
		}
		if due {
			m.gave(c.allocated)
		}
	}
}

func TestTheRuntimeTellsWhatWasAllocated(t *testing.T) {
	before := allocated()
	big := make([]byte, 8<<20)
	if after := allocated(); before == 0 || after-before < uint64(len(big)) {
		t.Errorf("%d before, and %d after %d bytes", before, after, len(big))
	}
}

// TestAProgramGoesOnWithoutItsPages drops what this very code was read from.
func TestAProgramGoesOnWithoutItsPages(t *testing.T) {
	for range 3 {
		giveBackNow()
		if got := time.Unix(0, 0).UTC().Format(time.RFC1123); got != "Thu, 01 Jan 1970 00:00:00 UTC" {
			t.Errorf("it reads %q", got)
		}
	}
}

func TestGivingBackEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*memoryEvery)
		defer cancel()
		giveBack(ctx) // or the test hangs
	})
}

func TestTheMemoryOfABusyTimeIsBounded(t *testing.T) {
	for reason, c := range map[string]struct {
		environment string
		bounded     bool
	}{
		"by default":                     {"", true},
		"not where the environment does": {"4GiB", false},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", c.environment)
			before := debug.SetMemoryLimit(-1)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); giveBack(ctx) }()
				synctest.Wait()
				if limit := debug.SetMemoryLimit(-1); (limit != before) != c.bounded || c.bounded && limit < memoryFloor {
					t.Errorf("the limit is %d, was %d", limit, before)
				}
				cancel()
				<-ended
			})
			if limit := debug.SetMemoryLimit(-1); limit != before {
				t.Errorf("the limit is %d afterwards, was %d", limit, before)
			}
		})
	}
}

// TestTheLimitLeavesRoom: else the collector would run all the time.
func TestTheLimitLeavesRoom(t *testing.T) {
	const mb = 1 << 20
	for live, want := range map[uint64]int64{
		0:         memoryFloor,
		30 * mb:   memoryFloor,
		128 * mb:  memoryFloor,
		200 * mb:  364 * mb,
		2000 * mb: 3064 * mb,
	} {
		if got := memoryLimit(live); got != want {
			t.Errorf("%d MB in use: %d MB, want %d", live/mb, got/mb, want/mb)
		}
	}
}
