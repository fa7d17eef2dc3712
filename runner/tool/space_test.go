package tool

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestACallThatFillsTheDiskIsEnded(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		left   func(after time.Duration) int64
		ended  bool
	}{
		"much is left":      {"a call may write", func(time.Duration) int64 { return 10 << 30 }, false},
		"it fills the disk": {"10 MiB each 100 ms", func(after time.Duration) int64 { return 1<<30 - int64(after/(100*time.Millisecond))*(10<<20) }, true},
		"it was full":       {"somebody else has filled it", func(time.Duration) int64 { return 100 << 20 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				begun := time.Now()
				stop := watchSpace(cancel, func() (int64, bool) { return c.left(time.Since(begun)), true })
				time.Sleep(time.Minute)
				stop()
				if ended := context.Cause(ctx) == errSpace; ended != c.ended { //nolint:errorlint // it is this one
					t.Errorf("ended is %v, want %v: %s", ended, c.ended, c.reason)
				}
			})
		})
	}
}

func TestTheSpaceOfAFolderIsKnown(t *testing.T) {
	if left, ok := FreeSpace(t.TempDir())(); !ok || left <= 0 {
		t.Errorf("%d, %v", left, ok)
	}
	if _, ok := FreeSpace("/no/such/folder")(); ok {
		t.Error("a folder that is not there has space")
	}
}
