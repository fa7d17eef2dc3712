package loop

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/reason"
)

const (
	// A text is stuck when a block of blockMin characters or more stands at its
	// end blockTimes times in a row. Blocks longer than blockMax bytes are not
	// looked for.
	blockMin   = 200
	blockMax   = 4096
	blockTimes = 5
	// blockVariety is how many different bytes a block has at least: a rule of
	// dashes or a run of blanks is no loop.
	blockVariety = 5
	// checkMin and checkMax are how many bytes are written between two looks at
	// the tail; the longer a text is, the less a little more of it matters.
	checkMin, checkMax = 1024, 4096
	// anchorBytes of the tail are searched for in the text before it; repeats
	// bounds how many places are looked at, for a tail that is found everywhere.
	anchorBytes = 48
	anchorTries = 32
	// tailBytes is what the longest block needs.
	tailBytes = blockTimes * blockMax
)

// repeat watches a text while it is streamed for a block that comes again and
// again. It looks at the tail only, once in a while, so that a long text costs
// no more a byte than a short one.
type repeat struct {
	tail    []byte
	written int
	next    int // look when so much is written
}

func newRepeat() *repeat { return &repeat{next: checkMin} }

// write adds a piece and says whether the text is stuck.
func (r *repeat) write(piece string) (wrong bool) {
	for len(piece) > 0 {
		n := min(len(piece), r.next-r.written)
		r.add(piece[:n])
		piece = piece[n:]
		if r.written += n; r.written < r.next {
			continue
		}
		r.next += min(max(checkMin, r.written/16), checkMax)
		if r.stuck() {
			return true
		}
	}
	return false
}

func (r *repeat) add(piece string) {
	if len(r.tail)+len(piece) > tailBytes+checkMax {
		r.tail = append(r.tail[:0], r.tail[len(r.tail)-tailBytes:]...)
	}
	if len(r.tail) > checkMax { // a long text needs all of it, once
		r.tail = slices.Grow(r.tail, tailBytes+checkMax-len(r.tail))
	}
	r.tail = append(r.tail, piece...)
}

// stuck looks for the newest bytes among those before them: if the end of the
// text is a block that repeats, they stand one block earlier, too. The nearest
// place comes first, for it needs the least text.
func (r *repeat) stuck() bool {
	n := len(r.tail)
	if n < blockTimes*blockMin {
		return false
	}
	anchor := r.tail[n-anchorBytes:]
	first := max(0, n-anchorBytes-blockMax)
	before := r.tail[first : n-blockMin]
	if !bytes.Contains(before, anchor) { // much faster than a search from the end
		return false
	}
	for range anchorTries {
		i := bytes.LastIndex(before, anchor)
		if i < 0 {
			return false
		}
		if r.repeats(n - anchorBytes - first - i) {
			return true
		}
		before = before[:i+anchorBytes-1]
	}
	return false
}

// repeats says whether the text ends in enough blocks of that many bytes.
func (r *repeat) repeats(period int) bool {
	n := len(r.tail)
	if period < blockMin || n < blockTimes*period {
		return false
	}
	if !bytes.Equal(r.tail[n-blockTimes*period:n-period], r.tail[n-(blockTimes-1)*period:]) {
		return false
	}
	block := r.tail[n-period:]
	return utf8.RuneCount(block) >= blockMin && varied(block)
}

func varied(block []byte) bool {
	var has [256]bool
	different := 0
	for _, b := range block {
		if has[b] {
			continue
		}
		has[b] = true
		if different++; different == blockVariety {
			return true
		}
	}
	return false
}

// stuck is the end of a run whose model writes one block again and again.
func stuck() error {
	return reason.New(reason.LoopDetected, "the model wrote a block of %d characters or more %d times in a row in one message", blockMin, blockTimes).
		WithHint("the limit is fixed; change spec.parameters of the Model, or choose another in spec.modelRef of the agent")
}
