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
		"polling":       {"waiting for a change is legal", GuardStop, rounds(10, "a {}"), changing, reason.Completed, 10},
		"long polling":  {"but not for ever", GuardStop, rounds(20, "a {}"), changing, reason.LoopDetected, 11},
		"polling cycle": {"a cycle with changing results is polling too", GuardStop, rounds(5, "a {}", "b {}"), changing, reason.Completed, 10},
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

func TestGuardMemoryIsBounded(t *testing.T) {
	g := guard{Guard: Guard{Identical: 3, Cycles: 3}}
	for i := range 5 * keep {
		_, _, _ = g.before(fmt.Sprint(i), i)
		g.made(fmt.Sprint(i), i)
	}
	if len(g.calls) > 2*keep {
		t.Errorf("%d calls are remembered", len(g.calls))
	}
}
