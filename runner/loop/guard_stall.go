package loop

import (
	"crypto/sha256"
	"strings"
)

// Points of a step, by the best of its calls. A step with progress resets the
// points to zero; a step that repeated an earlier call with the same result
// adds pointsStale.
const (
	// pointsStale is what one step counts of those that Guard.Stalled allows.
	pointsStale = 4
	// pointsEcho is for a new failure after the same words as before: the model
	// does not react to the errors.
	pointsEcho = 3
	// pointsSimilar is a failure that a call with cosmetic differences had before.
	pointsSimilar = 2
	// pointsPoll is a call that waits, one whose call or result differs from an
	// earlier one in figures only, and a failure that was not seen before.
	pointsPoll = 1
	// pairsKept bounds the memory for what was seen.
	pairsKept = 1 << 16
)

// stall counts steps without progress: no file changes, and each result has
// been returned before for an equal call. Equal means that cosmetic changes do
// not count (words). It finds loops without a fixed period: cycles of any
// length, the same file read between others, one failing command in many
// spellings.
type stall struct {
	points int
	steps  int // that gave the points

	// calls and pairs are the calls made, and the calls with their results.
	calls map[uint64]bool
	pairs map[[2]uint64]bool
	// states are those of the workspace that were seen; a state that comes back
	// is not progress.
	states map[string]bool

	step       int
	best       int // points of the open step; -1: no call with a result
	text, said [sha256.Size]byte
	spoke      bool
}

// enter closes the step before when a call of a new one is judged.
func (s *stall) enter(step int, state string) {
	if step != s.step {
		s.close()
		s.step = step
	}
	if state == "" || state == unknownState || s.states[state] {
		return
	}
	if s.states == nil || len(s.states) >= pairsKept {
		s.states = map[string]bool{}
	}
	if len(s.states) > 0 { // the first one is only known now
		s.points, s.steps = 0, 0
	}
	s.states[state] = true
}

func (s *stall) close() {
	if s.step > 0 && s.best >= 0 {
		points := s.best
		if points == pointsPoll && s.spoke && s.said == s.text {
			points = pointsEcho
		}
		if points == 0 {
			s.points, s.steps = 0, 0
		} else {
			s.points, s.steps = s.points+points, s.steps+1
		}
	}
	s.best, s.text, s.spoke = -1, s.said, false
}

// says takes the text of an answer with calls.
func (s *stall) says(text string, step int) {
	if step != s.step {
		s.close()
		s.step = step
	}
	fields := strings.Fields(strings.ToLower(text))
	if len(fields) > 0 {
		s.said, s.spoke = sha256.Sum256([]byte(strings.Join(fields, " "))), true
	}
}

func (s *stall) made(a asked) {
	if s.calls == nil || len(s.calls) >= pairsKept {
		s.calls = map[uint64]bool{}
	}
	s.calls[a.exact], s.calls[a.rough] = true, true
}

func (s *stall) result(a asked, o outcome) {
	if s.pairs == nil || len(s.pairs) >= pairsKept {
		s.pairs = map[[2]uint64]bool{}
	}
	same, figures, rough := [2]uint64{a.exact, o.exact}, [2]uint64{a.exact, ^o.rough}, [2]uint64{^a.rough, o.rough}
	points := 0
	switch {
	case o.waits:
		points = pointsPoll
	case s.pairs[same]:
		points = pointsStale
	case o.failed && o.telling && s.pairs[rough]:
		points = pointsSimilar
	case s.pairs[figures], o.failed, o.telling && s.pairs[rough]:
		points = pointsPoll
	}
	s.pairs[same], s.pairs[figures] = true, true
	if o.telling {
		s.pairs[rough] = true
	}
	if s.best < 0 || points < s.best {
		s.best = points
	}
}

// over reports whether a call may not run any more. A call that was never made
// has a limit that is higher by half: it may be the way out.
func (s *stall) over(limit int, a asked) bool {
	if limit == 0 {
		return false
	}
	limit *= pointsStale
	if !s.calls[a.exact] && !s.calls[a.rough] {
		limit += limit / 2
	}
	return s.points >= limit
}

// forget is for a model that has lost what it had read: a summary replaced it, so
// that reading it again is not a loop.
func (s *stall) forget() {
	s.points, s.steps, s.pairs, s.calls = 0, 0, nil, nil
}
