package loop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

// A guard that is rebuilt from the view knows what the one knew that was there.
func TestRebuiltGuardRemembersTheRun(t *testing.T) {
	acts := []string{GuardStop, GuardNudge, GuardAsk}
	compared := map[string]int{}
	for seed := range uint64(90) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		var answers []answer
		for i := range 4 + rnd.IntN(7) {
			var list []string
			for range 1 + rnd.IntN(3) {
				list = append(list, []string{`a {"x": 1}`, `b {}`, `none {}`, `a {"x":`, `C {}`, `d {}`, `e {}`}[rnd.IntN(7)])
			}
			a := calls(list...)
			for j := range a.out.Calls {
				a.out.Calls[j].ID = fmt.Sprintf("%d-%d", i, j)
			}
			a.out.Text = []string{"", "again", "once more", "and again"}[rnd.IntN(4)]
			answers = append(answers, a)
		}
		w := newWorld(t, append(answers, say("done"))...)
		w.decide = func(c message.ToolCall) (message.Decision, error) {
			if c.Tool == "b" {
				return message.Decision{Action: message.Deny}, nil
			}
			return message.Decision{Action: message.Allow}, nil
		}
		w.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
			return &message.ToolResult{Text: "x", Output: fmt.Sprint(len(c.ID) % 2)}, nil
		}
		cfg := w.config()
		cfg.Guard.Act, cfg.Guard.Identical = acts[seed%3], 3
		if seed%2 == 1 { // half of the runs are told something on their way
			when := 2 + rnd.IntN(4)
			cfg.Inbox = &mail{w: w, arrives: at(when, "do it again")}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		l := &loop{Config: cfg, cancel: cancel, guard: guard{Guard: cfg.Guard}}
		end, err := l.live(ctx)
		l.settle()
		cancel(nil)
		if err != nil {
			t.Fatal(err)
		}
		if end.Reason == reason.LoopDetected {
			continue // a run that is over is not taken up
		}
		compared[cfg.Guard.Act]++
		again := guard{Guard: cfg.Guard}
		again.rebuild(cfg.View, cfg.Toolbox.Check)
		if diff := cmp.Diff(state(&l.guard), state(&again)); diff != "" {
			t.Fatalf("seed %d, %s: guard (-lived +rebuilt):\n%s", seed, cfg.Guard.Act, diff)
		}
	}
	for _, act := range acts {
		if compared[act] < 8 {
			t.Errorf("%d runs with %s were compared: the test proves little", compared[act], act)
		}
	}
}

// state is what a guard knows, for comparison.
func state(g *guard) (lines []string) {
	for _, c := range g.calls {
		lines = append(lines, fmt.Sprintf("%s %x in step %d", c.call, c.result, c.step))
	}
	lines = append(lines, fmt.Sprint("nudged ", len(g.nudged)), fmt.Sprint("invalid ", g.invalid))
	most := 0
	for _, n := range g.texts {
		most = max(most, n)
	}
	return append(lines, fmt.Sprint("texts ", len(g.texts), most))
}

func TestRebuildKnowsCallsThatTheToolboxNoLongerTakes(t *testing.T) {
	v := &view.Run{}
	part := func(id string) message.Part {
		return message.Part{Type: message.PartTool, Tool: &message.ToolPart{
			CallID: id, Tool: "gone", Raw: `{"a":1}`, State: message.StateCompleted, Start: 1, Result: &message.ToolResult{Output: "same"},
		}}
	}
	v.Messages = []*message.Message{
		user("do it"), assistant(part("1")), assistant(part("2")),
		{Role: message.RoleAssistant, Error: message.Void, Parts: []message.Part{part("3")}},
		{Role: message.RoleAssistant, Summary: true, Parts: []message.Part{part("4")}},
	}
	g := guard{Guard: Guard{Identical: 3, Cycles: 3}}
	g.rebuild(v, func(message.CallRequest) (message.Checked, error) {
		return message.Checked{}, &message.CallError{Code: message.CodeUnknownTool}
	})
	if repeats, wrong, _ := g.before("gone\n"+`{"a":1}`, 1); repeats != 2 || wrong == "" {
		t.Errorf("%d repeats (%s), want 2", repeats, wrong)
	}
}

func TestSameWordsWithoutProgressEndTheRun(t *testing.T) {
	step := func(text, call string) answer {
		a := calls(call)
		a.out.Text = text
		return a
	}
	for name, c := range map[string]struct {
		reason  string
		answers []answer
		end     reason.Reason
		asked   int
	}{
		"same": {
			"the third time nothing runs",
			[]answer{step("I try again.", `deny {"n":1}`), step("i TRY  again.", `deny {"n":2}`), step("I try\nagain.", `a {}`)},
			reason.LoopDetected, 3,
		},
		"not in a row": {
			"other words between change nothing", []answer{
				step("again", `deny {"n":1}`), step("or so", `deny {"n":2}`), step("again", `deny {"n":3}`), step("or so", `none {}`), step("again", `a {}`),
			}, reason.LoopDetected, 5,
		},
		"progress": {
			"a call that completes does", []answer{
				step("again", `deny {"n":1}`), step("again", `a {"n":2}`), step("again", `deny {"n":3}`), step("again", `a {"n":4}`), say("done"),
			}, reason.Completed, 5,
		},
		"no words": {
			"silence is not repeated",
			[]answer{step("", `deny {"n":1}`), step(" ", `deny {"n":2}`), step("", `deny {"n":3}`), step("\n", `deny {"n":4}`), say("done")},
			reason.Completed, 5,
		},
		"other words": {
			"each says something else",
			[]answer{step("one", `deny {"n":1}`), step("two", `deny {"n":2}`), step("three", `deny {"n":3}`), say("done")},
			reason.Completed, 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.answers...)
			w.decide = func(c message.ToolCall) (message.Decision, error) {
				if c.Tool == "deny" {
					return message.Decision{Action: message.Deny}, nil
				}
				return message.Decision{Action: message.Allow}, nil
			}
			var v *view.Run
			end := w.start(t.Context(), func(c *Config) { v = c.View })
			if end.Reason != c.end || len(w.requests) != c.asked {
				t.Errorf("%s: ended %s (%s) after %d requests", c.reason, end.Reason, end.Message, len(w.requests))
			}
			if c.end != reason.LoopDetected {
				return
			}
			last := v.Message().Calls()[0]
			if last.Result == nil || last.Result.Code != message.CodeLoop || len(w.ran()) > 0 || !strings.Contains(end.Hint, "spec.instructions") {
				t.Errorf("%s: the call ended %+v, ran %v, hint %q", c.reason, last.Result, w.ran(), end.Hint)
			}
		})
	}
}

func TestTextMemoryIsBounded(t *testing.T) {
	g := guard{}
	for i := range 5 * textsKept {
		g.text(fmt.Sprint("word ", i), false)
	}
	if len(g.texts) > textsKept {
		t.Errorf("%d texts are remembered", len(g.texts))
	}
}

func TestInvalidCallsCountOverTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		steps  [][]string
		end    reason.Reason
	}{
		"across steps":  {"whatever they are", [][]string{{"none {}", "a {"}, {"none {}"}, {"a {", "b {"}}, reason.LoopDetected},
		"four":          {"four may happen", [][]string{{"none {}", "a {"}, {"none {}"}, {"a {"}}, reason.Completed},
		"valid between": {"a call that is one begins anew", [][]string{{"none {}", "a {", "none {}", "b {"}, {"a {}"}, {"none {}", "a {", "none {}", "b {"}}, reason.Completed},
		"held up":       {"also when it may not run", [][]string{{"none {}", "a {", "none {}", "b {"}, {"deny {}"}, {"none {}"}}, reason.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			var answers []answer
			for i, s := range c.steps {
				a := calls(s...)
				for j := range a.out.Calls {
					a.out.Calls[j].ID = fmt.Sprintf("%d-%d", i, j)
				}
				answers = append(answers, a)
			}
			w := newWorld(t, append(answers, say("done"))...)
			w.decide = func(c message.ToolCall) (message.Decision, error) {
				if c.Tool == "deny" {
					return message.Decision{Action: message.Deny}, nil
				}
				return message.Decision{Action: message.Allow}, nil
			}
			if end := w.start(t.Context()); end.Reason != c.end || end.Reason == reason.LoopDetected && !strings.Contains(end.Hint, "spec.modelRef") {
				t.Errorf("%s: ended %s (%s; %s)", c.reason, end.Reason, end.Message, end.Hint)
			}
		})
	}
}
