package loop

import (
	"agentctl.dev/agentctl/api/message"
)

// Guard ends a run that repeats itself. It counts over the whole run: text
// between two calls, or a new step, does not reset it. Each detector is off
// when its number is 0.
type Guard struct {
	// Identical is the number of equal consecutive calls that is one too many.
	Identical int
	// Cycles is the number of rounds of a sequence of two to four calls that is
	// one too many.
	Cycles int
	// Stalled is the number of steps in a row without anything new after which
	// a step that repeats an earlier call is not run.
	Stalled int
	// Invalid is the number of answers in a row that hold nothing but invalid
	// calls and that is one too many.
	Invalid int
	// RepeatedText is the number of bytes at the end of an answer that may
	// repeat earlier text of the answer.
	RepeatedText int
	// Act is what happens: "Stop", "Nudge" or "Ask".
	Act string
}

// The answers of a guard.
const (
	GuardStop  = "Stop"
	GuardNudge = "Nudge"
	GuardAsk   = "Ask"
)

const (
	longestCycle = 4
	// changingFactor multiplies the limits of equal calls whose results differ,
	// that wait, or between which the workspace changed: a poll, or a command
	// that advances something. They are bounded nevertheless.
	changingFactor = 10
	// keep is more than any sane limit can look back; older calls are forgotten
	// so that a turn costs the same on step 10 and step 10,000.
	keep = 8192
)

type guard struct {
	Guard
	calls   []seen
	dropped int // calls that are forgotten: places count from the first call of the run
	nudged  map[string]bool
	invalid int // answers in a row without a valid call
	stall   stall
}

// seen is a call that was made, the state of the workspace before it, where
// that was determined, and the outcome of the call.
type seen struct {
	call    string
	state   string
	outcome outcome
	step    int
}

// unknownState is the state of a workspace that could not be determined: it may
// have changed whenever a call wrote.
const unknownState = "?"

// asked is a valid call as the guard sees it.
type asked struct {
	signature string
	// exact and rough are the words of the call: see callWords.
	exact, rough uint64
	waits        bool
}

func newAsked(c message.Checked) asked {
	a := asked{signature: c.Signature}
	a.exact, a.rough, a.waits = callWords(c.Tool, c.Args)
	return a
}

// familiar reports whether an equal call, or one with only cosmetic
// differences, was made before, or there was no progress for some steps. Then
// the state of the workspace shows whether the run makes progress.
func (g *guard) familiar(a asked) bool {
	return g.stall.points > 0 || g.stall.calls[a.exact] || g.stall.calls[a.rough]
}

// before counts how often the call is in a row with its equals. It returns what
// is wrong with the call, for the model, and how to allow it, for people; ""
// when it may run. State is that of the workspace, "" when it was not
// determined.
func (g *guard) before(a asked, step int, state string) (repeats int, wrong, hint string) {
	g.stall.enter(step, state)
	call := a.signature
	repeats = g.run(call, 1)
	if limit, loops := g.loops(g.Identical, 1, repeats, a, state); loops {
		return repeats,
			sentence("this would be call %d in a row of the same call with the same arguments", repeats+1),
			sentence("raise spec.loopGuard.identicalCalls of the agent (%d are one too many%s), or set spec.loopGuard.onDetect", limit, changing(limit, g.Identical))
	}
	for period := 2; period <= longestCycle; period++ {
		rounds := g.run(call, period)
		if limit, loops := g.loops(g.Cycles, period, rounds, a, state); loops {
			return repeats,
				sentence("the last calls repeat a cycle of %d calls, and this would begin round %d", period, rounds+1),
				sentence("raise spec.loopGuard.cycles of the agent (%d are one too many%s), or set spec.loopGuard.onDetect", limit, changing(limit, g.Cycles))
		}
	}
	if g.stall.over(g.Stalled, a) {
		return repeats,
			sentence("the last %d steps brought nothing new: their calls repeated earlier ones with the same results, or failed, and no file changed", g.stall.steps),
			sentence("raise spec.loopGuard.stalledSteps of the agent (%d), set it to 0 to switch the detector off, or set spec.loopGuard.onDetect", g.Stalled)
	}
	return repeats, "", ""
}

// loops reports whether one more round would reach the limit, and returns the
// limit that applies. Rounds with results that are new do not count.
func (g *guard) loops(limit, period, rounds int, next asked, state string) (int, bool) {
	if limit == 0 || rounds+1 < limit {
		return limit, false
	}
	results, changed := g.results(period, rounds, state)
	if changed || next.waits {
		limit *= changingFactor
	}
	return limit, rounds-max(0, results-1)+1 >= limit
}

func changing(limit, declared int) string {
	if limit == declared {
		return ""
	}
	return sentence(": %d times as many as declared, because the results or the files changed, or the calls wait", changingFactor)
}

// run counts the complete rounds of a sequence of that period which are at
// the end of the calls and which the next call would continue.
func (g *guard) run(next string, period int) int {
	n := len(g.calls)
	if n < period || g.calls[n-period].call != next {
		return 0
	}
	if period > 1 && g.uniform(n-period, n) {
		return 0 // equal calls are the business of the period 1
	}
	rounds := 1
	for (rounds+1)*period <= n {
		for i := n - (rounds+1)*period; i < n-rounds*period; i++ {
			if g.calls[i].call != g.calls[i+period].call {
				return rounds
			}
		}
		rounds++
	}
	return rounds
}

func (g *guard) uniform(from, to int) bool {
	for i := from + 1; i < to; i++ {
		if g.calls[i].call != g.calls[from].call {
			return false
		}
	}
	return true
}

// results counts the rounds of the row whose results have words that no round
// before had. It reports whether anything changed from one round to another: a
// result, or the workspace. Calls that wait count as a change.
func (g *guard) results(period, rounds int, state string) (different int, changed bool) {
	n := len(g.calls)
	start := n - rounds*period
	for start > 0 && g.calls[start-1].call == g.calls[start-1+period].call {
		start-- // what is there of the round before
	}
	for first := start; first < min(start+period, n); first++ {
		c := g.column(first, period, state)
		different, changed = max(different, c.said), changed || c.changed
	}
	return different, changed
}

// column is what equal calls of a row have in common.
type column struct {
	said    int // different results, in words
	changed bool
}

// column compares the calls at one place of every round. A call whose result is
// not there yet shows no change.
func (g *guard) column(first, period int, state string) (c column) {
	said, before := map[uint64]bool{}, outcome{}
	was, wrote := "", false
	look := func(now string) {
		switch {
		case now == "":
		case now == unknownState:
			c.changed = c.changed || wrote
		case was != "" && was != now:
			c.changed = true
		}
		if now != "" && now != unknownState {
			was = now
		}
	}
	for i := first; i < len(g.calls); i += period {
		s := &g.calls[i]
		look(s.state)
		if !s.outcome.known {
			continue
		}
		o := s.outcome
		c.changed = c.changed || o.waits || before.known && o.exact != before.exact
		wrote = wrote || o.writes
		said[o.rough], before = true, o
	}
	look(state)
	c.said = len(said)
	return c
}

// made adds a call that was begun and returns its place; its result is set when
// it is there.
func (g *guard) made(a asked, step int, state string) int {
	if len(g.calls) >= 2*keep {
		g.dropped += len(g.calls) - keep
		g.calls = append([]seen(nil), g.calls[len(g.calls)-keep:]...)
	}
	g.calls = append(g.calls, seen{call: a.signature, state: state, step: step})
	g.stall.made(a)
	return g.dropped + len(g.calls) - 1
}

// result takes what came of a call, or why it did not run.
func (g *guard) result(place int, a asked, r *message.ToolResult) {
	if place == unseen {
		return
	}
	o := newOutcome(r)
	o.waits = o.waits || a.waits
	if i := place - g.dropped; i >= 0 && i < len(g.calls) {
		g.calls[i].outcome = o
	}
	g.stall.result(a, o)
}

// answered takes how many calls of an answer were valid, and reports whether
// there were too many answers in a row without any.
func (g *guard) answered(valid, calls int) (wrong string) {
	if valid > 0 || calls == 0 {
		g.invalid = 0
		return ""
	}
	if g.invalid++; g.Invalid == 0 || g.invalid < g.Invalid {
		return ""
	}
	return sentence("%d answers in a row held invalid calls only", g.invalid)
}

// DefaultGuard is the guard of an agent that declares none, as spec.loopGuard
// documents it.
func DefaultGuard() Guard {
	return Guard{Identical: 3, Cycles: 3, Stalled: 8, Invalid: 5, RepeatedText: DefaultRepeatedText, Act: GuardStop}
}
