package tool

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Bounds of what a call may leave on the disk of the run's files. The host gives a
// folder no quota, so the disk is looked at while a call runs.
const (
	// leastSpace is what must be left on the disk: journals, and whatever else this
	// host does, need some.
	leastSpace = 512 << 20
	// ownShare is what a call must have taken by itself, or somebody else did, before
	// it is ended for a lack of space.
	ownShare = 64 << 20
	// spaceEvery is how often the disk is looked at.
	spaceEvery = 250 * time.Millisecond
)

// errSpace ends a call that fills the disk.
var errSpace = errors.New("the call was ended because it filled the disk: less than 512 MiB are left where the files of the run are")

// watchSpace cancels a call when the disk is nearly full and was not as it began.
// free returns the bytes that are left. The function it returns ends the watch.
func watchSpace(cancel context.CancelCauseFunc, free func() (int64, bool)) (stop func()) {
	if free == nil {
		return func() {}
	}
	var mu sync.Mutex
	over := false
	var timer *time.Timer
	var before int64
	var look func()
	look = func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		left, ok := free()
		if ok && left < leastSpace && before-left > ownShare {
			cancel(errSpace)
			return
		}
		timer = time.AfterFunc(spaceEvery, look)
	}
	mu.Lock()
	defer mu.Unlock()
	before, _ = free()
	timer = time.AfterFunc(spaceEvery, look)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}
