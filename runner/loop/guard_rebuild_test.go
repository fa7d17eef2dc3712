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
		cfg.Guard.Act = acts[seed%3]
		cfg.Files = stateFunc(func() string { return fmt.Sprint(len(w.events) % 3) })
		if seed%2 == 1 { // half of the runs get a message on their way
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
			continue // a run that is over is not resumed
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
		lines = append(lines, fmt.Sprintf("%s %+v in step %d, files %q", c.call, c.outcome, c.step, c.state))
	}
	g.stall.close() // a rebuilt one has the newest step still open, too
	return append(lines, fmt.Sprint("nudged ", len(g.nudged)), fmt.Sprint("invalid ", g.invalid),
		fmt.Sprint("points ", g.stall.points, " of ", g.stall.steps), fmt.Sprint("pairs ", len(g.stall.pairs), " of ", len(g.stall.calls), ", states ", len(g.stall.states)))
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
	if repeats, wrong, _ := g.before(asked{signature: "gone\n" + `{"a":1}`}, 1, ""); repeats != 2 || wrong == "" {
		t.Errorf("%d repeats (%s), want 2", repeats, wrong)
	}
}

// A model that says the same before each failure is stopped earlier than one that
// says something else.
func TestSameWordsBeforeFailuresCountMore(t *testing.T) {
	run := func(text func(int) string) (End, int) {
		var answers []answer
		for i := range 45 {
			a := calls(fmt.Sprintf(`deny {"path":%q}`, word(i)))
			a.out.Calls[0].ID, a.out.Text = fmt.Sprintf("call-%d", i), text(i)
			answers = append(answers, a)
		}
		w := newWorld(t, append(answers, say("done"))...)
		w.decide = func(c message.ToolCall) (message.Decision, error) {
			return message.Decision{Action: message.Deny, Message: string(c.Args)}, nil
		}
		end := w.start(t.Context(), func(c *Config) { c.Guard = DefaultGuard() })
		return end, len(w.requests)
	}
	if end, asked := run(func(int) string { return "I try again." }); end.Reason != reason.LoopDetected || asked < 9 || asked > 20 {
		t.Errorf("the same words: ended %s (%s) after %d requests", end.Reason, end.Message, asked)
	}
	if end, asked := run(word); asked < 40 {
		t.Errorf("other words: ended %s (%s) after %d requests", end.Reason, end.Message, asked)
	}
}

func TestInvalidCallsCountOverTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		steps  [][]string
		end    reason.Reason
	}{
		"answers":       {"five answers in a row", [][]string{{"none {}"}, {"none {}", "a {"}, {"none {}"}, {"a {"}, {"b {"}}, reason.LoopDetected},
		"four":          {"four may happen", [][]string{{"none {}"}, {"none {}"}, {"a {"}, {"none {}"}}, reason.Completed},
		"one answer":    {"the model has not read what is wrong with the first", [][]string{{"none {}", "a {", "none {}", "b {", "none {}", "a {", "b {"}}, reason.Completed},
		"valid between": {"a valid call starts the count again", [][]string{{"none {}"}, {"a {"}, {"none {}"}, {"b {"}, {"a {}"}, {"none {}"}, {"a {"}, {"b {"}, {"none {}"}}, reason.Completed},
		"beside":        {"so does one in the same answer", [][]string{{"none {}"}, {"a {"}, {"none {}"}, {"b {"}, {"a {", "c {}"}, {"none {}"}}, reason.Completed},
		"held up":       {"also when it may not run", [][]string{{"none {}"}, {"a {"}, {"none {}"}, {"b {"}, {"deny {}"}, {"none {}"}}, reason.Denied},
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
