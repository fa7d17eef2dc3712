package loop

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// guardRun lets the model make the calls one a step and counts those that run.
func guardRun(t *testing.T, act string, list []string, output func(n int) string) (End, int) {
	t.Helper()
	var answers []answer
	for i, c := range list {
		a := calls(c)
		a.out.Calls[0].ID = fmt.Sprintf("call-%d", i)
		a.out.Text = strings.Repeat("thinking ", i) // text between calls must not matter
		answers = append(answers, a)
	}
	w := newWorld(t, append(answers, say("done"))...)
	n := 0
	w.run = func(context.Context, message.ToolCall) (*message.ToolResult, error) {
		n++
		return &message.ToolResult{Text: "x", Output: output(n), DurationMicros: int64(n)}, nil
	}
	end := w.start(t.Context(), func(c *Config) { c.Guard.Act, c.Limits.MaxSteps = act, 1000 })
	return end, n
}

func rounds(n int, sequence ...string) (list []string) {
	for range n {
		list = append(list, sequence...)
	}
	return list
}

func TestGuard(t *testing.T) {
	same := func(int) string { return "same" }
	changing := func(n int) string { return fmt.Sprint(n) }
	for name, c := range map[string]struct {
		reason string
		act    string
		calls  []string
		output func(int) string
		end    reason.Reason
		ran    int
	}{
		"two":           {"two equal calls are no loop", GuardStop, rounds(2, "a {}"), same, reason.Completed, 2},
		"three":         {"the third equal call does not run", GuardStop, rounds(3, "a {}"), same, reason.LoopDetected, 2},
		"other between": {"another call between resets", GuardStop, []string{"a {}", "a {}", "b {}", "a {}", "a {}", "c {}"}, same, reason.Completed, 6},
		"cycle of two":  {"the third round does not begin", GuardStop, rounds(4, "a {}", "b {}"), same, reason.LoopDetected, 4},
		"cycle of four": {"neither does that of a longer cycle", GuardStop, rounds(4, "a {}", "b {}", "c {}", "d {}"), same, reason.LoopDetected, 8},
		"polling":       {"waiting for a change is legal", GuardStop, rounds(20, "a {}"), changing, reason.Completed, 20},
		"long polling":  {"but not for ever", GuardStop, rounds(40, "a {}"), changing, reason.LoopDetected, 29},
		"polling cycle": {"a cycle with changing results is polling too", GuardStop, rounds(12, "a {}", "b {}"), changing, reason.Completed, 24},
		"new words":     {"a result that says something new each time is no repetition", GuardStop, rounds(45, "a {}"), func(n int) string { return word(n) }, reason.Completed, 45},
		"waiting":       {"a call that waits is made again", GuardStop, rounds(9, `a {"command":"sleep 1; cat x"}`), same, reason.Completed, 9},
		"nudge":         {"the model is told once, then it ends", GuardNudge, rounds(5, "a {}"), same, reason.LoopDetected, 2},
		"nudge helps":   {"a model that listens goes on", GuardNudge, []string{"a {}", "a {}", "a {}", "b {}"}, same, reason.Completed, 3},
		"ask":           {"nobody answers, so the call does not run", GuardAsk, rounds(3, "a {}"), same, reason.Completed, 2},
		"differs":       {"other arguments are another call", GuardStop, []string{`a {"n":1}`, `a {"n":2}`, `a {"n":3}`, `a {"n":4}`}, same, reason.Completed, 4},
	} {
		t.Run(name, func(t *testing.T) {
			end, ran := guardRun(t, c.act, c.calls, c.output)
			if end.Reason != c.end || ran != c.ran {
				t.Errorf("%s: ended %s (%s) after %d runs, want %s after %d", c.reason, end.Reason, end.Message, ran, c.end, c.ran)
			}
		})
	}
}

func TestGuardCountsDuplicatesInOneStep(t *testing.T) {
	w := newWorld(t, calls(`a {}`, `a {}`, `a {}`), say("done"))
	end := w.start(t.Context())
	if end.Reason != reason.LoopDetected || len(w.ran()) != 0 {
		t.Errorf("ended %s, ran %v: the loop is seen before anything is dispatched", end.Reason, w.ran())
	}
}

// A detector that is set to 0 is off, and no other one takes its place.
func TestEachDetectorCanBeSwitchedOff(t *testing.T) {
	invalid := func(n int) (list []string) {
		for range n {
			list = append(list, "none {}")
		}
		return list
	}
	for name, c := range map[string]struct {
		calls []string
		off   func(*Guard)
	}{
		"identicalCalls": {rounds(7, "a {}"), func(g *Guard) { g.Identical = 0 }},
		"cycles":         {rounds(4, "a {}", "b {}"), func(g *Guard) { g.Cycles = 0 }},
		"stalledSteps":   {rounds(3, "a {}", "b {}", "c {}", "d {}", "e {}", "f {}"), func(g *Guard) { g.Stalled = 0 }},
		"invalidAnswers": {invalid(7), func(g *Guard) { g.Invalid = 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(change func(*Guard)) End {
				var answers []answer
				for i, call := range c.calls {
					a := calls(call)
					a.out.Calls[0].ID = fmt.Sprintf("call-%d", i)
					answers = append(answers, a)
				}
				w := newWorld(t, append(answers, say("done"))...)
				return w.start(t.Context(), func(c *Config) { c.Guard = DefaultGuard(); change(&c.Guard) })
			}
			if end := run(func(*Guard) {}); end.Reason != reason.LoopDetected || !strings.Contains(end.Hint, name) {
				t.Errorf("with the detector: ended %s (%s); the hint %q names spec.loopGuard.%s", end.Reason, end.Message, end.Hint, name)
			}
			if end := run(c.off); end.Reason != reason.Completed {
				t.Errorf("without the detector: ended %s (%s)", end.Reason, end.Message)
			}
		})
	}
}

// The workspace decides about calls that look alike: calls that change files
// continue, calls that write the same contents again do not.
func TestAChangedWorkspaceIsProgress(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		state  func(n int) string
		end    reason.Reason
	}{
		"changes":        {"each call made another state", func(n int) string { return fmt.Sprint(n) }, reason.Completed},
		"stays":          {"the state is the same", func(int) string { return "x" }, reason.LoopDetected},
		"cannot be seen": {"the call may have written", func(int) string { return unknownState }, reason.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			var answers []answer
			for i := range 9 {
				a := calls("bash {}")
				a.out.Calls[0].ID = fmt.Sprintf("call-%d", i)
				answers = append(answers, a)
			}
			w := newWorld(t, append(answers, say("done"))...)
			n, looked := 0, 0
			w.run = func(context.Context, message.ToolCall) (*message.ToolResult, error) {
				n++
				return &message.ToolResult{Text: "ok", Output: "ok", Writes: true}, nil
			}
			end := w.start(t.Context(), func(cfg *Config) {
				cfg.Files = stateFunc(func() string { looked++; return c.state(n) })
			})
			if end.Reason != c.end {
				t.Errorf("%s: ended %s (%s) after %d calls", c.reason, end.Reason, end.Message, n)
			}
			if c.end == reason.Completed && looked != 8 {
				t.Errorf("%d looks at the workspace for 9 equal calls: the first needs none", looked)
			}
		})
	}
}

// Files are read for a call that resembles an earlier one: a run without
// repetition has no cost.
func TestTheWorkspaceIsNotLookedAtWithoutNeed(t *testing.T) {
	var answers []answer
	for i := range 9 {
		answers = append(answers, calls(fmt.Sprintf(`%s {"command":%q}`, word(i), word(i+50))))
	}
	w := newWorld(t, append(answers, say("done"))...)
	end := w.start(t.Context(), func(cfg *Config) {
		cfg.Files = stateFunc(func() string { t.Error("looked at the workspace"); return "" })
	})
	if end.Reason != reason.Completed {
		t.Errorf("ended %s (%s)", end.Reason, end.Message)
	}
}

func TestGuardMemoryIsBounded(t *testing.T) {
	g := guard{Guard: Guard{Identical: 3, Cycles: 3}}
	for i := range max(5*keep, pairsKept+10) {
		a := asked{signature: fmt.Sprint(i), exact: uint64(i), rough: uint64(i)}
		_, _, _ = g.before(a, i, fmt.Sprint(i))
		g.result(g.made(a, i, ""), a, &message.ToolResult{Output: fmt.Sprint(i)})
	}
	if len(g.calls) > 2*keep || len(g.stall.pairs) > pairsKept+2 || len(g.stall.calls) > pairsKept+2 || len(g.stall.states) > pairsKept {
		t.Errorf("%d calls, %d pairs, %d states are remembered", len(g.calls), len(g.stall.pairs), len(g.stall.states))
	}
}
