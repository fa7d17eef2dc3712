package loop

import (
	"crypto/sha256"
	"strconv"

	"agentctl.dev/agentctl/api/message"
)

// Guard stops a model that repeats itself. It counts over the whole run: text
// between two calls, or a new step, does not reset it.
type Guard struct {
	// Identical is the number of equal consecutive calls that is one too many; 0 is off.
	Identical int
	// Cycles is the number of rounds of a sequence of two to four calls that is
	// one too many; 0 is off.
	Cycles int
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
	// pollingFactor multiplies the limits for equal calls whose results differ:
	// waiting for something to change is no loop.
	pollingFactor = 4
	// windowSteps and windowCalls: a call that brought one result that often in
	// the last steps does not run again, whatever stood between.
	windowSteps = 10
	windowCalls = 5
	// invalidLimit is how many calls in a row may be no calls at all.
	invalidLimit = 5
	// keep is more than any sane limit can look back; older calls are forgotten
	// so that a turn costs the same on step 10 and step 10,000.
	keep = 8192
)

type guard struct {
	Guard
	calls   []seen
	dropped int // calls that are forgotten: places count from the first call of the run
	nudged  map[string]bool
	invalid int
	texts   map[[sha256.Size]byte]int // since a call last completed
}

// seen is a call that was made: what was asked, and what came of it. The result
// is "" while there is none, and for a call that did not run.
type seen struct {
	call, result string
	step         int
}

// before says how often the call would stand in a row with its equals, and what
// is wrong with it, for the model, and how to allow it, for people; "" when it
// may go on.
func (g *guard) before(call string, step int) (repeats int, wrong, hint string) {
	g.invalid = 0 // it is a call, whatever becomes of it
	repeats = g.run(call, 1)
	if limit, loops := g.loops(g.Identical, 1, repeats); loops {
		return repeats,
			sentence("this would be call %d in a row of the same call with the same arguments", repeats+1),
			sentence("raise spec.loopGuard.identicalCalls of the agent (%d are one too many%s), or set spec.loopGuard.onDetect", limit, polled(limit, g.Identical))
	}
	polling := g.polls(1, repeats)
	for period := 2; period <= longestCycle; period++ {
		rounds := g.run(call, period)
		if limit, loops := g.loops(g.Cycles, period, rounds); loops {
			return repeats,
				sentence("the last calls repeat a cycle of %d calls, and this would begin round %d", period, rounds+1),
				sentence("raise spec.loopGuard.cycles of the agent (%d are one too many%s), or set spec.loopGuard.onDetect", limit, polled(limit, g.Cycles))
		}
		polling = polling || g.polls(period, rounds)
	}
	if n, most := g.windowed(call, step), max(windowCalls, g.Identical-1, g.Cycles-1); g.Identical > 0 && n >= most && !polling {
		return repeats,
			sentence("this would be call %d of the same call in %d steps, and the result was the same each time", n+1, windowSteps),
			sentence("raise spec.loopGuard.identicalCalls of the agent above %d, or set spec.loopGuard.onDetect", most+1)
	}
	return repeats, "", ""
}

// loops says whether one more round is the one too many, and which that is.
func (g *guard) loops(limit, period, rounds int) (int, bool) {
	if limit > 0 && g.polls(period, rounds) {
		limit *= pollingFactor
	}
	return limit, limit > 0 && rounds+1 >= limit
}

func polled(limit, declared int) string {
	if limit == declared {
		return ""
	}
	return sentence(": %d times as many as declared, because the results differed", pollingFactor)
}

// run counts the complete rounds of a sequence of that period which stand at
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

// polls says whether the rounds at the end, and what is there of the one before
// them, brought different results. A call whose result is not there yet shows no
// change.
func (g *guard) polls(period, rounds int) bool {
	if rounds == 0 {
		return false
	}
	n := len(g.calls)
	start := n - rounds*period
	for start > 0 && g.calls[start-1].call == g.calls[start-1+period].call {
		start--
	}
	for first := start; first < min(start+period, n); first++ {
		known := ""
		for i := first; i < n; i += period {
			switch result := g.calls[i].result; {
			case result == "" || result == known:
			case known != "":
				return true
			default:
				known = result
			}
		}
	}
	return false
}

// windowed counts how often the call brought its most frequent result in the
// last steps; a result that is not there yet may be that one.
func (g *guard) windowed(call string, step int) int {
	counts, open, most := map[string]int{}, 0, 0
	for i := len(g.calls) - 1; i >= 0 && g.calls[i].step > step-windowSteps; i-- {
		switch c := g.calls[i]; {
		case c.call != call:
		case c.result == "":
			open++
		default:
			counts[c.result]++
			most = max(most, counts[c.result])
		}
	}
	return most + open
}

// made adds a call that was begun and returns its place; its result is set when
// it is there.
func (g *guard) made(call string, step int) int {
	if len(g.calls) >= 2*keep {
		g.dropped += len(g.calls) - keep
		g.calls = append([]seen(nil), g.calls[len(g.calls)-keep:]...)
	}
	g.calls = append(g.calls, seen{call: call, step: step})
	return g.dropped + len(g.calls) - 1
}

func (g *guard) result(place int, r *message.ToolResult) {
	if i := place - g.dropped; place != unseen && i >= 0 && i < len(g.calls) {
		g.calls[i].result = resultSignature(r)
	}
}

// resultSignature tells results apart by output and exit code only: durations,
// times and ids differ each time and mean nothing.
func resultSignature(r *message.ToolResult) string {
	exit := "none"
	if r.ExitCode != nil {
		exit = strconv.Itoa(*r.ExitCode)
	}
	sum := sha256.Sum256([]byte(exit + "\n" + string(r.Code) + "\n" + r.Output))
	return string(sum[:])
}
