package host

import (
	"fmt"
	"sync"
	"time"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// Bounds of the progress of one call. All of it is written to the journal: without
// a bound a program could fill the disk with it. What does not fit is not queued:
// watchers get the newest as soon as there is room, and a count of the rest.
const (
	// progressBurst is what a call may show at once, in bytes, and progressRate what
	// is added to that each second.
	progressBurst = 256 << 10
	progressRate  = 2 << 10
	// progressCost is what each event takes besides its text.
	progressCost = 256
)

// throttle passes on the progress of one call as far as its bounds allow.
type throttle struct {
	// pass shows a text.
	pass func(text string)

	mu      sync.Mutex
	room    float64
	at      time.Time
	pending string
	waiting bool
	timer   *time.Timer
	dropped int64
	closed  bool
	// quiet: what was dropped is not told.
	quiet bool
}

func newThrottle(pass func(string)) *throttle {
	return &throttle{pass: pass, room: progressBurst, at: time.Now()}
}

// show passes a text on now, or keeps it until there is room, in place of one that
// is kept already.
func (t *throttle) show(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if t.waiting {
		t.dropped++
	}
	t.pending, t.waiting = text, true
	if t.timer == nil {
		t.offer()
	}
}

// offer passes on what is kept, or waits until there is room for it.
func (t *throttle) offer() {
	now := time.Now()
	t.room = min(t.room+now.Sub(t.at).Seconds()*progressRate, progressBurst)
	t.at = now
	cost := float64(len(t.pending) + progressCost)
	if t.room >= cost {
		t.room -= cost
		t.waiting = false
		t.pass(t.pending)
		return
	}
	wait := time.Duration((cost - t.room) / progressRate * float64(time.Second))
	t.timer = time.AfterFunc(wait+time.Millisecond, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.timer = nil
		if !t.closed && t.waiting {
			t.offer()
		}
	})
}

// close ends the progress. The newest text is shown, so that the last state of a
// call is not lost, and with it how many were not.
func (t *throttle) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	switch {
	case t.dropped > 0 && !t.quiet:
		note := fmt.Sprintf("(%d progress updates were not shown)", t.dropped)
		t.pass(joined(tail(t.pending, toolpb.MaxProgress-len(note)-1), note))
	case t.waiting:
		t.pass(t.pending)
	}
}
