package loop

import (
	"fmt"
	"math/rand/v2"
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
			if _, wrong, _ := g.before(name, step+1); wrong != "" {
				stopped = append(stopped, fmt.Sprintf("%d/%s", step+1, name))
				continue
			}
			places[i] = g.made(name, step+1)
		}
		for i, c := range calls {
			if _, result, ok := strings.Cut(c, "="); ok && places[i] != unseen {
				g.result(places[i], &message.ToolResult{Output: result})
			}
		}
	}
	return stopped
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
		"window": {
			"the sixth call with one result in ten steps, whatever stands between",
			Guard{Identical: 3, Cycles: 3},
			script{{"a=1"}, {"b=1", "a=1"}, {"c=1", "a=1"}, {"d=1", "a=1"}, {"e=1", "a=1"}, {"f=1", "a=1"}},
			"6/a",
		},
		"window, other results": {
			"a call that brings something new each time",
			Guard{Identical: 3, Cycles: 3},
			script{{"a=1"}, {"b=1", "a=2"}, {"c=1", "a=3"}, {"d=1", "a=4"}, {"e=1", "a=5"}, {"f=1", "a=6"}},
			"",
		},
		"window, too far apart": {
			"every second step is five times in ten",
			Guard{Identical: 3, Cycles: 0},
			steps("a=1", "b=1", "a=1", "c=1", "a=1", "d=1", "a=1", "e=1", "a=1", "f=1", "a=1", "g=1", "a=1", "h=1"), "",
		},
		"window, same step": {
			"results that are not there yet count as the same",
			Guard{Identical: 3, Cycles: 3},
			script{{"a=1", "b=1", "a=1", "c=1", "a=1", "d=1", "a=1", "e=1", "a=1", "f=1", "a=1"}},
			"1/a",
		},
		"window, allowed": {
			"a manifest that allows more gets more",
			Guard{Identical: 20, Cycles: 3},
			script{{"a=1"}, {"b=1", "a=1"}, {"c=1", "a=1"}, {"d=1", "a=1"}, {"e=1", "a=1"}, {"f=1", "a=1"}, {"g=1", "a=1"}},
			"",
		},
		"window, off": {
			"identicalCalls 0 turns it off",
			Guard{Identical: 0, Cycles: 3},
			script{{"a=1"}, {"b=1", "a=1"}, {"c=1", "a=1"}, {"d=1", "a=1"}, {"e=1", "a=1"}, {"f=1", "a=1"}, {"g=1", "a=1"}},
			"",
		},
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
			"four times the limit",
			Guard{Identical: 3, Cycles: 3},
			steps("a=1", "a=2", "a=3", "a=4", "a=5", "a=6", "a=7", "a=8", "a=9", "a=10", "a=11", "a=12"), "12/a",
		},
		"polling, stuck at last": {
			"what has changed once is a poll: its own limit ends it",
			Guard{Identical: 3, Cycles: 3},
			steps(append([]string{"a=0"}, rounds(11, "a=1")...)...), "12/a",
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
		"row":    {steps("a=1", "a=1"), "spec.loopGuard.identicalCalls of the agent (3 are one too many)"},
		"poll":   {steps("a=1", "a=2", "a=3", "a=4", "a=5", "a=6", "a=7", "a=8", "a=9", "a=10", "a=11"), "(12 are one too many: 4 times as many"},
		"cycle":  {steps("a=1", "b=1", "a=1", "b=1"), "spec.loopGuard.cycles of the agent (3 are one too many)"},
		"window": {script{{"b=1", "a=1"}, {"c=1", "a=1"}, {"d=1", "a=1"}, {"e=1", "a=1"}, {"f=1", "a=1", "g=1"}}, "spec.loopGuard.identicalCalls of the agent above 6"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &guard{Guard: Guard{Identical: 3, Cycles: 3}}
			if stopped := replay(g, c.script); len(stopped) > 0 {
				t.Fatalf("stopped %v too early", stopped)
			}
			_, wrong, hint := g.before("a", len(c.script)+1)
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

func (g *slowGuard) wrong(call string, step int) bool {
	next := append(append([]seen(nil), g.calls...), seen{call: call, step: step})
	polling := false
	for period := 1; period <= longestCycle; period++ {
		rounds := g.rounds(next, period)
		polls := differ(next, period, rounds)
		polling = polling || polls
		limit := g.Cycles
		if period == 1 {
			limit = g.Identical
		}
		if polls {
			limit *= pollingFactor
		}
		if limit > 0 && rounds+1 >= limit {
			return true
		}
	}
	most, counts, open := max(windowCalls, g.Identical-1, g.Cycles-1), map[string]int{}, 0
	for _, c := range g.calls {
		if c.call == call && c.step > step-windowSteps {
			if c.result == "" {
				open++
			} else {
				counts[c.result]++
			}
		}
	}
	for _, n := range counts {
		if g.Identical > 0 && !polling && n+open >= most {
			return true
		}
	}
	return g.Identical > 0 && !polling && open >= most
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

func differ(next []seen, period, rounds int) bool {
	n := len(next) - 1
	start := n - rounds*period
	for rounds > 0 && start > 0 && next[start-1].call == next[start-1+period].call {
		start--
	}
	for i := start; i < n; i++ {
		for j := i + period; j < n; j += period {
			if a, b := next[i].result, next[j].result; a != "" && b != "" && a != b {
				return true
			}
		}
	}
	return false
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
				_, wrong, _ := fast.before(call, step)
				if want := slow.wrong(call, step); (wrong != "") != want {
					t.Fatalf("limits %+v, calls %+v, then %s: %q, want an alarm = %v", limits, slow.calls, call, wrong, want)
				}
				if wrong != "" {
					alarms++
					continue
				}
				places = append(places, fast.made(call, step))
				slow.calls = append(slow.calls, seen{call: call, step: step})
			}
			for _, p := range places {
				if rnd.IntN(5) > 0 {
					r := &message.ToolResult{Output: fmt.Sprint(rnd.IntN(results))}
					fast.result(p, r)
					slow.calls[p].result = resultSignature(r)
				}
			}
		}
	}
	if alarms < 1000 {
		t.Errorf("only %d alarms: the test proves little", alarms)
	}
}

func TestResultsAreToldApartByOutputAndExitCode(t *testing.T) {
	zero, one := 0, 1
	same := resultSignature(&message.ToolResult{Output: "x", ExitCode: &zero})
	for name, c := range map[string]struct {
		reason string
		result message.ToolResult
		same   bool
	}{
		"noise": {
			"duration, title, metadata, text and blob differ each time",
			message.ToolResult{Output: "x", ExitCode: &zero, DurationMicros: 9, Title: "t", Metadata: []byte(`{"pid":1}`), Text: "x\n[3 ms]", Blob: "b", Writes: true},
			true,
		},
		"output":  {"what the tool wrote", message.ToolResult{Output: "y", ExitCode: &zero}, false},
		"exit":    {"how it ended", message.ToolResult{Output: "x", ExitCode: &one}, false},
		"no exit": {"whether it ended with a code", message.ToolResult{Output: "x"}, false},
		"code":    {"whether it failed", message.ToolResult{Output: "x", ExitCode: &zero, Code: message.CodeTimeout}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resultSignature(&c.result) == same; got != c.same {
				t.Errorf("%s: equal = %v", c.reason, got)
			}
		})
	}
}

func TestGuardRemembersPlacesOfForgottenCalls(t *testing.T) {
	g := &guard{Guard: Guard{Identical: 3, Cycles: 3}}
	var place int
	for i := range 2*keep + 10 {
		place = g.made(fmt.Sprint(i), i)
	}
	g.result(place, &message.ToolResult{Output: "x"})
	g.result(0, &message.ToolResult{Output: "long gone"})
	if last := g.calls[len(g.calls)-1]; last.result == "" || last.call != fmt.Sprint(2*keep+9) {
		t.Errorf("the newest call is %+v", last)
	}
}
