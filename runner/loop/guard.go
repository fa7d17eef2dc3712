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
	// invalidLimit is how many calls in a row may be no calls at all.
	invalidLimit = 5
)

type guard struct {
	Guard
	calls   []seen
	nudged  map[string]bool
	invalid int
}

// seen is a call that was made: what was asked, and what came of it.
type seen struct {
	call, result string
	step         int
}

// before says how often the call would stand in a row with its equals, and
// what is wrong with it; "" when it may go on.
func (g *guard) before(call string, _ int) (repeats int, wrong string) {
	repeats = g.run(call, 1) // rounds of the sequence of one call
	limit := func(n, period int) bool {
		if n == 0 {
			return false
		}
		rounds := g.run(call, period) + 1
		if g.sameResults(period, rounds-1) {
			return rounds >= n
		}
		return rounds >= n*pollingFactor
	}
	if limit(g.Identical, 1) {
		return repeats, sentence("this would be call %d in a row of the same call with the same arguments", repeats+1)
	}
	for period := 2; period <= longestCycle; period++ {
		if limit(g.Cycles, period) {
			return repeats, sentence("the last calls repeat a cycle of %d calls, and this would begin round %d", period, g.run(call, period)+1)
		}
	}
	return repeats, ""
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

// sameResults says whether the rounds at the end brought the same results.
func (g *guard) sameResults(period, rounds int) bool {
	n := len(g.calls)
	for i := n - rounds*period; i >= 0 && i+period < n; i++ {
		if g.calls[i].result != g.calls[i+period].result {
			return false
		}
	}
	return true
}

// keep is more than any limit can look back on a sane manifest; older calls
// are forgotten so that a turn costs the same on step 10 and step 10,000.
const keep = 8192

// made adds a call that was begun; its result is set when it is there.
func (g *guard) made(call string, step int) int {
	if len(g.calls) >= 2*keep {
		g.calls = append([]seen(nil), g.calls[len(g.calls)-keep:]...)
	}
	g.calls = append(g.calls, seen{call: call, step: step})
	g.invalid = 0
	return len(g.calls) - 1
}

func (g *guard) result(i int, r *message.ToolResult) {
	if i != unseen && i < len(g.calls) {
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
