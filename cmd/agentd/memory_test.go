package main

import (
	"context"
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
