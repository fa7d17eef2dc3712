package tool

import (
	"context"
	"errors"
	"strings"
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
				disk := func() (int64, bool) { return c.left(time.Since(begun)), true }
				stop := watchSpace(ctx, cancel, []func() (int64, bool){disk}, nil)
				time.Sleep(time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
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

// A disk of 1 TiB from which others take and give, and the files of a run on it.
func TestACallThatOutgrowsTheFilesOfTheRunIsEnded(t *testing.T) {
	const limit = 10 << 30
	for name, c := range map[string]struct {
		reason string
		before int64
		grown  func(after time.Duration) int64
		others func(after time.Duration) int64
		lasts  time.Duration
		ended  bool
		at     int64
	}{
		"it stays below":      {"9 GiB in a minute", 0, rate(9<<30, time.Minute), nil, time.Minute, false, 0},
		"it goes beyond":      {"1 GiB each second", 0, rate(1<<30, time.Second), nil, time.Minute, true, 11 << 30},
		"others take":         {"the disk has lost much, but not to this run", 0, rate(1<<30, time.Minute), rate(1<<30, time.Second), time.Minute, false, 0},
		"others give":         {"the disk does not show what the run takes", 0, rate(1<<30, time.Second), rate(-1<<30, time.Second), time.Minute, true, 21 << 30},
		"a short call":        {"it is over before the disk is looked at", 0, rate(110<<30, time.Second), nil, 100 * time.Millisecond, true, 12 << 30},
		"it removes":          {"an earlier call has gone beyond", 20 << 30, rate(-1<<30, time.Second), nil, 5 * time.Second, false, 0},
		"it adds once more":   {"an earlier call has gone beyond", 20 << 30, rate(1<<30, time.Second), nil, time.Minute, true, 21 << 30},
		"it is slow to count": {"a measurement takes half a second", 0, rate(1<<30, time.Second), nil, time.Minute, true, 13 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				begun := time.Now()
				grown := func() int64 { return c.before + c.grown(time.Since(begun)) }
				free := func() (int64, bool) {
					left := int64(1)<<40 - grown()
					if c.others != nil {
						left -= c.others(time.Since(begun))
					}
					return left, true
				}
				g := &Growth{Limit: limit, Free: free, Measure: func(context.Context) (int64, error) {
					n := grown()
					if name == "it is slow to count" {
						time.Sleep(500 * time.Millisecond)
					}
					return n, nil
				}}
				if c.before > 0 {
					g.known, g.grown, g.at, g.left = true, c.before, time.Now(), 1<<40-c.before
				}
				stop := watchSpace(ctx, cancel, nil, g)
				select {
				case <-time.After(c.lasts):
				case <-ctx.Done():
				}
				at := grown()
				err := context.Cause(ctx)
				if after := stop(); err == nil {
					err = after
				}
				var over *growthError
				if ended := errors.As(err, &over); ended != c.ended || ended && at > c.at {
					t.Errorf("it ends with %v after %d MiB, want %v, at most %d MiB: %s", err, at>>20, c.ended, c.at>>20, c.reason)
				}
			})
		})
	}
}

// rate is so many bytes in each time.
func rate(n int64, each time.Duration) func(time.Duration) int64 {
	return func(after time.Duration) int64 { return int64(float64(n) * (float64(after) / float64(each))) }
}

func TestADiskHasRoomForWhatLeavesEnough(t *testing.T) {
	dir := t.TempDir()
	left, ok := FreeSpace(dir)()
	if !ok {
		t.Skip("what is left on the disk is not known")
	}
	if err := Fits(dir, left); err == nil || !strings.Contains(err.Error(), "512 must stay") {
		t.Errorf("all that is left: %v", err)
	}
	if err := Fits(dir, -leastSpace); err != nil {
		t.Errorf("nothing more: %v", err)
	}
}
