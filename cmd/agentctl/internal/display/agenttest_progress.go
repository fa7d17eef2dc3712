package display

import (
	"fmt"
	"time"
)

// progressEvery is how often a long set of tests says how far it is.
const progressEvery = 5 * time.Second

// TestProgress says on stderr how far a set of tests is, if it takes long.
type TestProgress struct {
	s    *Screen
	last time.Time
	now  func() time.Time
}

// NewTestProgress returns one that has said nothing.
func NewTestProgress(s *Screen, now func() time.Time) *TestProgress {
	return &TestProgress{s: s, last: now(), now: now}
}

// Show takes how many cases have ended.
func (p *TestProgress) Show(done, total, failed int) {
	now := p.now()
	if done == total || now.Sub(p.last) < progressEvery {
		return
	}
	p.last = now
	line := fmt.Sprintf("%d of %s", done, plural(int64(total), "case"))
	if failed > 0 {
		line += fmt.Sprintf(", %d failed", failed)
	}
	p.s.print(line + "\n")
}
