package loop

import (
	"agentctl.dev/agentctl/api/reason"
)

const (
	// DefaultRepeatedText is how many bytes at the end of an answer may repeat:
	// about 16,000 tokens, which is more than answers hold that quote a log, a table
	// or an array of zeros and then go on.
	DefaultRepeatedText = 64 << 10
	// A model that may write fewer tokens than the default needs is stopped
	// earlier, but not before leastRepeated. A token of repeated text is at most
	// about bytesPerRepeat bytes.
	leastRepeated, bytesPerRepeat = 32 << 10, 8
	// cutRepeated is enough when the provider cut the answer at the model's
	// output limit: the run ends in any case, and the reason is named.
	cutRepeated = 16 << 10
	// likelyFactor is how much longer a text may be that repeats in all but its
	// figures, or consists of less than leastVariety different bytes: a list that
	// counts, or a field of zeros, is a likely answer.
	likelyFactor, leastVariety = 4, 5
	// argumentsFactor is the same for the arguments of a call: with them files
	// are written, whose contents may repeat.
	argumentsFactor = 16
	// shingle is the length in bytes of the pieces that are compared. A text
	// repeats when fewer than one in freshShare of its pieces is new: a block of any
	// length, a growing sentence, a few sentences in any order.
	shingle, freshShare = 24, 25
	// looksPerLimit is how often a tail of the limit's length is examined while
	// as much is written again.
	looksPerLimit = 8
)

// repeat watches a text while it is written for a tail that only repeats. It
// examines the tail when an eighth of its length is new, and nothing in a text
// shorter than the limit.
type repeat struct {
	limit int
	next  int // examine when so much is written
	long  int // examine the longer tail then
}

// newRepeat returns the watch of one part of an answer, and nil where the
// detector is off. Tokens is the most an answer may hold, 0 when it is not known.
func newRepeat(limit int, tokens int64) *repeat {
	if limit == 0 {
		return nil
	}
	if tokens > 0 && tokens < int64(limit) { // no overflow below
		limit = min(limit, max(leastRepeated, int(tokens)*bytesPerRepeat))
	}
	return &repeat{limit: limit, next: limit, long: likelyFactor * limit}
}

// grown takes the whole text so far, of which the last added bytes are new, and
// reports whether it repeats. It examines the same places of a text however the
// text comes in pieces, so that a replay stops at the same byte.
func (r *repeat) grown(text string) bool {
	if r == nil {
		return false
	}
	for len(text) >= r.next || len(text) >= r.long {
		if at := r.next; at <= r.long {
			r.next += max(1, r.limit/looksPerLimit)
			if tail := text[at-r.limit : at]; varied(tail) && repetitive(tail) {
				return true
			}
			continue
		}
		at, size := r.long, likelyFactor*r.limit
		r.long += max(1, size/looksPerLimit)
		if repetitive(withoutFigures(text[at-size : at])) {
			return true
		}
	}
	return false
}

// varied reports whether a text has more than a few different bytes.
func varied(text string) bool {
	var has [256]bool
	different := 0
	for i := range len(text) {
		if b := text[i]; !has[b] {
			has[b] = true
			if different++; different == leastVariety {
				return true
			}
		}
	}
	return false
}

// repetitive reports whether a text consists of few different pieces.
func repetitive(text string) bool {
	pieces := len(text) - shingle + 1
	if pieces <= 0 { // nothing is left of a text of figures
		return true
	}
	most := pieces / freshShare
	seen := make(map[uint64]struct{}, most+1)
	// A rolling hash: one step a byte, whatever the length of the pieces.
	const base = 1099511628211
	var sum, top uint64 = 0, 1
	for range shingle - 1 {
		top *= base
	}
	for i := range len(text) {
		if i >= shingle {
			sum -= top * uint64(text[i-shingle])
		}
		sum = sum*base + uint64(text[i])
		if i < shingle-1 {
			continue
		}
		if seen[sum] = struct{}{}; len(seen) > most {
			return false
		}
	}
	return true
}

// withoutFigures returns the text with each number as one sign.
func withoutFigures(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		switch {
		case !isDigit(text[i]):
			out = append(out, text[i])
		case len(out) == 0 || out[len(out)-1] != '#':
			out = append(out, '#')
		}
	}
	return string(out)
}

// cutShort reports whether an answer that was cut at the model's output limit
// did nothing but repeat itself in the end.
func (g *guard) cutShort(text string) bool {
	limit := min(g.RepeatedText, cutRepeated)
	return limit > 0 && len(text) >= limit && repetitive(text[len(text)-limit:])
}

// repeatedHint is how to go on with a model that writes the same again and again.
const repeatedHint = "change spec.parameters of the Model or choose another in spec.modelRef of the agent; " +
	"where the text is meant to repeat, raise spec.loopGuard.repeatedTextBytes of the agent, or set it to 0 to switch the detector off"

// stuck is the end of a run whose model writes the same again and again.
func (r *repeat) stuck() error {
	return reason.New(reason.LoopDetected, "the model repeated itself in one answer: its last %d bytes say nothing new", r.limit).WithHint("%s", repeatedHint)
}
