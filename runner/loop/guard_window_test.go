package loop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

// script is a list of steps; a call is written call=result, and a call that is
// stopped is never made.
type script [][]string

// replay holds every call of the script against a guard and returns those that
// were not to be made, as step/call.
func replay(g *guard, s script) (stopped []string) {
	for step, calls := range s {
		places := make([]int, len(calls))
		for i, c := range calls {
			name, _, _ := strings.Cut(c, "=")
			places[i] = unseen
			if _, wrong, _ := g.before(named(name), step+1, ""); wrong != "" {
				stopped = append(stopped, fmt.Sprintf("%d/%s", step+1, name))
				continue
			}
			places[i] = g.made(named(name), step+1, "")
		}
		for i, c := range calls {
			if name, result, ok := strings.Cut(c, "="); ok {
				g.result(places[i], named(name), &message.ToolResult{Output: result})
			}
		}
	}
	return stopped
}

// numbered are n calls of one name, each with another figure as its result.
func numbered(n int, call string) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%s=%d", call, i))
	}
	return list
}

// named is a call of that name without arguments.
func named(name string) asked {
	return newAsked(message.Checked{Tool: name, Signature: name})
}

// steps makes one step of each call.
func steps(calls ...string) (s script) {
	for _, c := range calls {
		s = append(s, []string{c})
	}
	return s
}

func TestGuardDetectors(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		guard   Guard
		script  script
		stopped string
	}{
		"twenty allowed": {
			"the twentieth is the one too many, not the third and not the sixth",
			Guard{Identical: 20, Cycles: 3},
			steps(rounds(21, "a=1")...), "20/a 21/a",
		},
		"polling beside a wait": {
			"a wait between two looks brings the same each time, and the looks do not",
			Guard{Identical: 3, Cycles: 3},
			script{{"look=1", "wait="}, {"look=2", "wait="}, {"look=3", "wait="}, {"look=4", "wait="}, {"look=5", "wait="}, {"look=6", "wait="}, {"look=7", "wait="}, {"look=8", "wait="}},
			"",
		},
		"alternation": {"the third round does not begin", Guard{Identical: 3, Cycles: 3}, steps(rounds(3, "a=1", "b=1")...), "5/a"},
		"alternation, more rounds": {
			"five rounds are declared", Guard{Identical: 3, Cycles: 5}, steps(rounds(4, "a=1", "b=1")...), "",
		},
		"period 3": {"a cycle of three", Guard{Identical: 3, Cycles: 3}, steps(rounds(3, "a=1", "b=1", "c=1")...), "7/a"},
		"period 4": {"a cycle of four", Guard{Identical: 3, Cycles: 3}, steps(rounds(3, "a=1", "b=1", "c=1", "d=1")...), "9/a"},
		"period 5": {"longer cycles are not looked for", Guard{Identical: 3, Cycles: 3}, steps(rounds(4, "a=1", "b=1", "c=1", "d=1", "e=1")...), ""},
		"duplicates of a step": {
			"they are in one row with those before", Guard{Identical: 3, Cycles: 3}, script{{"a=1"}, {"a=1", "a=1"}}, "2/a",
		},
		"duplicates are no poll": {
			"a result that is not there yet shows no change", Guard{Identical: 3, Cycles: 3}, script{{"a=1", "a", "a=1"}}, "1/a",
		},
		"polling": {"the results differ", Guard{Identical: 3, Cycles: 3}, steps("a=1", "a=2", "a=3", "a=4", "a=4", "a=4", "a=5"), ""},
		"polling for ever": {
			"ten times the limit",
			Guard{Identical: 3, Cycles: 3},
			steps(numbered(30, "a")...), "30/a",
		},
		"polling, stuck at last": {
			"what has changed once is a poll: its own limit ends it",
			Guard{Identical: 3, Cycles: 3},
			steps(append([]string{"a=0"}, rounds(29, "a=1")...)...), "30/a",
		},
		"news": {
			"a result that says something new does not count",
			Guard{Identical: 3, Cycles: 3},
			steps("a=one", "a=two", "a=three", "a=four", "a=five"), "",
		},
		"stalled": {
			"two steps that brought nothing new, after a round that did",
			Guard{Stalled: 2},
			steps(rounds(2, "a=1", "b=1", "c=1", "d=1", "e=1", "f=1")...), "9/c 10/d 11/e 12/f",
		},
		"not stalled": {
			"something new between starts the count again",
			Guard{Stalled: 2},
			steps("a=1", "b=1", "a=1", "c=1", "a=1", "d=1", "a=1", "e=1", "a=1", "f=1"), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(replay(&guard{Guard: c.guard}, c.script), " "); got != c.stopped {
				t.Errorf("%s: stopped %q, want %q", c.reason, got, c.stopped)
			}
		})
	}
}

func TestGuardNamesTheFieldToChange(t *testing.T) {
	for name, c := range map[string]struct {
		script script
		hint   string
	}{
		"row":   {steps("a=1", "a=1"), "spec.loopGuard.identicalCalls of the agent (3 are one too many)"},
		"poll":  {steps(numbered(29, "a")...), "(30 are one too many: 10 times as many"},
		"cycle": {steps("a=1", "b=1", "a=1", "b=1"), "spec.loopGuard.cycles of the agent (3 are one too many)"},
		"stall": {steps(rounds(3, "a=1", "b=1", "c=1", "d=1", "e=1")[:13]...), "spec.loopGuard.stalledSteps of the agent (8)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &guard{Guard: Guard{Identical: 3, Cycles: 3, Stalled: 8}}
			if stopped := replay(g, c.script); len(stopped) > 0 {
				t.Fatalf("stopped %v too early", stopped)
			}
			_, wrong, hint := g.before(named("a"), len(c.script)+1, "")
			if wrong == "" || !strings.Contains(hint, c.hint) || !strings.Contains(hint, "spec.loopGuard.onDetect") {
				t.Errorf("%q: %q, want %q and what else can be done", wrong, hint, c.hint)
			}
		})
	}
}

// slowGuard is the definition, written down without regard for speed.
type slowGuard struct {
	Guard
	calls []seen
}

func (g *slowGuard) wrong(call string) bool {
	next := append(slices.Clone(g.calls), seen{call: call})
	for period := 1; period <= longestCycle; period++ {
		rounds := g.rounds(next, period)
		limit := g.Cycles
		if period == 1 {
			limit = g.Identical
		}
		if limit == 0 || rounds+1 < limit {
			continue
		}
		if differ(next, period, rounds) {
			limit *= changingFactor
		}
		if rounds+1-max(0, news(next, period, rounds)-1) >= limit {
			return true
		}
	}
	return false
}

// rounds counts the whole rounds before the last call of next, which that call
// continues.
func (g *slowGuard) rounds(next []seen, period int) int {
	n := len(next) - 1
	count := 0
	for count = 0; n-(count+1)*period >= 0; count++ {
		for i := range period {
			// Each call of the round equals the one a period later; of the newest
			// round only the first is compared, with the call that is to be made.
			at := n - (count+1)*period + i
			if at+period <= n && next[at].call != next[at+period].call {
				return g.unless(next, period, count)
			}
		}
	}
	return g.unless(next, period, count)
}

// unless is 0 for a longer period made of one call: that is the row's business.
func (g *slowGuard) unless(next []seen, period, count int) int {
	if count == 0 || period == 1 {
		return count
	}
	n := len(next) - 1
	for i := n - period; i < n; i++ {
		if next[i].call != next[n-period].call {
			return count
		}
	}
	return 0
}

// first returns where the rounds begin, with what is there of the one before.
func first(next []seen, period, rounds int) int {
	n := len(next) - 1
	start := n - rounds*period
	for rounds > 0 && start > 0 && next[start-1].call == next[start-1+period].call {
		start--
	}
	return start
}

func differ(next []seen, period, rounds int) bool {
	for i := first(next, period, rounds); i < len(next)-1; i++ {
		for j := i + period; j < len(next)-1; j += period {
			if a, b := next[i].outcome, next[j].outcome; a.known && b.known && a.exact != b.exact {
				return true
			}
		}
	}
	return false
}

// news counts the results of one place of the rounds that differ in words.
func news(next []seen, period, rounds int) (most int) {
	for i := first(next, period, rounds); i < len(next)-1; i++ {
		said := map[uint64]bool{}
		for j := i; j < len(next)-1; j += period {
			if o := next[j].outcome; o.known {
				said[o.rough] = true
			}
		}
		most = max(most, len(said))
	}
	return most
}

func TestGuardKeepsToItsDefinition(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	alarms := 0
	for range 400 {
		limits := Guard{Identical: rnd.IntN(5), Cycles: rnd.IntN(5)}
		if limits.Identical == 1 || limits.Cycles == 1 {
			continue
		}
		fast, slow := &guard{Guard: limits}, &slowGuard{Guard: limits}
		kinds, results := 1+rnd.IntN(4), 1+rnd.IntN(3)
		for step := 1; step <= 40; step++ {
			var places []int
			for range 1 + rnd.IntN(3) {
				call := string(rune('a' + rnd.IntN(kinds)))
				_, wrong, _ := fast.before(named(call), step, "")
				if want := slow.wrong(call); (wrong != "") != want {
					t.Fatalf("limits %+v, calls %+v, then %s: %q, want an alarm = %v", limits, slow.calls, call, wrong, want)
				}
				if wrong != "" {
					alarms++
					continue
				}
				places = append(places, fast.made(named(call), step, ""))
				slow.calls = append(slow.calls, seen{call: call, step: step})
			}
			for _, p := range places {
				if rnd.IntN(5) > 0 {
					r := &message.ToolResult{Output: []string{"x 1", "x 2", "y"}[rnd.IntN(results)]}
					fast.result(p, named(slow.calls[p].call), r)
					slow.calls[p].outcome = newOutcome(r)
				}
			}
		}
	}
	if alarms < 1000 {
		t.Errorf("only %d alarms: the test proves little", alarms)
	}
}

func TestResultsAreComparedByOutputAndExitCode(t *testing.T) {
	zero, one := 0, 1
	first := message.ToolResult{Output: "ok  x  0.12s at 0xc0001234, 3 files", ExitCode: &zero}
	for name, c := range map[string]struct {
		reason       string
		result       message.ToolResult
		exact, rough bool
	}{
		"noise": {
			"duration, title, metadata, text and blob differ each time",
			message.ToolResult{Output: first.Output, ExitCode: &zero, DurationMicros: 9, Title: "t", Metadata: []byte(`{"pid":1}`), Text: "x\n[3 ms]", Blob: "b"},
			true, true,
		},
		"timing":  {"so do durations and addresses in the output", message.ToolResult{Output: "ok  x  3.7s at 0xc0005678, 3 files", ExitCode: &zero}, true, true},
		"figure":  {"another figure may be a step forward", message.ToolResult{Output: "ok  x  0.12s at 0xc0001234, 4 files", ExitCode: &zero}, false, true},
		"output":  {"what the tool wrote", message.ToolResult{Output: "ok  y  0.12s at 0xc0001234, 3 files", ExitCode: &zero}, false, false},
		"exit":    {"how it ended", message.ToolResult{Output: first.Output, ExitCode: &one}, false, false},
		"code":    {"whether it failed", message.ToolResult{Output: first.Output, ExitCode: &zero, Code: message.CodeTimeout}, false, false},
		"no exit": {"a program that succeeds is like a tool that does", message.ToolResult{Output: first.Output}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newOutcome(&first), newOutcome(&c.result)
			if a.exact == b.exact != c.exact || a.rough == b.rough != c.rough {
				t.Errorf("%s: equal %v, equal in words %v", c.reason, a.exact == b.exact, a.rough == b.rough)
			}
		})
	}
}

func TestNoiseOfResults(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"at 12:03:04", "at 13:59:00", true},
		{"2026-01-02T03:04:05.123Z up", "2026-11-22T13:14:15.9Z up", true},
		{"took 12ms", "took 1.5s", true},
		{"took 3 seconds", "took 41 seconds", true},
		{"commit 1a2b3c4d", "commit ffee0011", true},
		{"a.go:12:3", "a.go:14:3", false}, // a line, not a time
		{"12 passed", "13 passed", false},
		{"40%", "45%", false},
		{"1.2.3", "1.2.4", false},
		{"id 12345678", "id 12345679", false}, // only digits: a number
	} {
		a, _ := digest(c.a)
		b, _ := digest(c.b)
		if a == b != c.same {
			t.Errorf("%q and %q: equal %v", c.a, c.b, a == b)
		}
	}
}

func TestCosmeticChangesOfCalls(t *testing.T) {
	for _, c := range []struct {
		a, b         string
		exact, rough bool
	}{
		{`{"command":"make all"}`, `{"command":"  make   all "}`, true, true},
		{`{"command":"make all"}`, `{"command":"make all","timeout":9,"description":"again"}`, true, true},
		{`{"command":"cat a.txt"}`, `{"command":"cat './a.txt'"}`, true, true},
		{`{"command":"make all"}`, `{"command":"make -s all 2>&1 | tail -20"}`, false, true},
		{`{"command":"npm test"}`, `{"command":"npm test # try 3"}`, false, true},
		{`{"page":1}`, `{"page":2}`, false, true},
		{`{"command":"grep -rn foo src"}`, `{"command":"grep -rn bar src"}`, false, false},
		{`{"path":"a.go"}`, `{"path":"b.go"}`, false, false},
	} {
		ae, ar, _ := callWords("t", []byte(c.a))
		be, br, _ := callWords("t", []byte(c.b))
		if ae == be != c.exact || ar == br != c.rough {
			t.Errorf("%s and %s: equal %v, nearly %v", c.a, c.b, ae == be, ar == br)
		}
	}
}

func TestGuardRemembersPlacesOfForgottenCalls(t *testing.T) {
	g := &guard{Guard: Guard{Identical: 3, Cycles: 3}}
	var place int
	for i := range 2*keep + 10 {
		place = g.made(named(fmt.Sprint(i)), i, "")
	}
	g.result(place, named("x"), &message.ToolResult{Output: "x"})
	g.result(0, named("y"), &message.ToolResult{Output: "long gone"})
	if last := g.calls[len(g.calls)-1]; !last.outcome.known || last.call != fmt.Sprint(2*keep+9) {
		t.Errorf("the newest call is %+v", last)
	}
}
