package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/loop"
)

// same expects a replay to record the same events as the recording.
func same(t *testing.T, c *cassette.Cassette, change ...func(*loop.Config)) {
	t.Helper()
	p, run, d := again(t, c, Options{}, change...)
	if d != nil {
		t.Errorf("the replay goes another way: %v", d)
	}
	if diff := cmp.Diff(c.Events, p.Told()); diff != "" {
		t.Errorf("events (-recorded +replayed):\n%s", diff)
	}
	if len(run.Warnings) > 0 && strings.Contains(strings.Join(run.Warnings, "\n"), "event ") {
		t.Errorf("the events are none of a run: %v", run.Warnings)
	}
}

func TestEveryKindOfRunIsLivedAgainAsItWas(t *testing.T) {
	cancelled := reason.New(reason.Cancelled, "stopped by interrupt")
	retry := message.Delta{Kind: message.DeltaRetry, Retry: &message.Retry{Attempt: 1, Attempts: 5, Class: "503", Error: "busy", WaitMillis: 60_000}}
	compacting := func(c *loop.Config) {
		c.Context = loop.Context{Window: 4000, AtPercent: 50, KeepRecent: 100, Prune: true}
	}
	long := strings.Repeat("many words of no use ", 300)
	for name, c := range map[string]struct {
		reason string
		turns  func(w *world) []turn
		want   reason.Reason
		stopAt int
		why    error
		change func(*loop.Config)
	}{
		"answer": {"a run without calls", func(w *world) []turn { return []turn{w.say("done")} }, reason.Completed, 0, nil, nil},
		"reasoning": {"what a provider wants back comes with the answer", func(w *world) []turn {
			a := w.say("done", `read {"a":1}`, `read {"b":2}`)
			a.out.Reasoning, a.out.ReasoningMetadata = "hm, let me see", json.RawMessage(`{"sig":"x"}`)
			a.out.TextMetadata, a.out.Calls[1].Metadata = json.RawMessage(`{"id":1}`), json.RawMessage(`{"t":2}`)
			a.emit = w.pieces(&a.out)
			return []turn{a, w.say("done")}
		}, reason.Completed, 0, nil, nil},
		"calls": {"parallel, exclusive, repaired, coerced, invalid, unknown", func(w *world) []turn {
			return []turn{
				w.say("I look.", `read {"a":1}`, `READ {"b":1}`, `x-alone {}`, `coerce {"n":"5"}`, `no {}`, `read {`, `err {}`, `redact {"x":"y"}`, `withheld {}`),
				w.say(""), w.say("done"),
			}
		}, reason.Completed, 0, nil, nil},
		"judged": {"every decision and every answer", func(w *world) []turn {
			return []turn{
				w.say("", `ask {"a":1}`, `ask-nobody {}`, `ask-better {}`, `deny {}`, `turn {}`, `fails {}`, `ask-broken {}`, `read {}`),
				w.say("done"),
			}
		}, reason.Completed, 0, nil, nil},
		"rejected": {"the run continues after a refusal", func(w *world) []turn {
			return []turn{w.say("", `read {"a":1}`, `ask-no {}`, `x {}`), w.say("done")}
		}, reason.Completed, 0, nil, nil},
		"ended": {"a person ends the run with a refusal", func(w *world) []turn {
			return []turn{w.say("", `read {"a":1}`, `ask-end {}`, `x {}`)}
		}, reason.Denied, 0, nil, nil},
		"retries": {"what was streamed before a retry is void, and nobody waits", func(w *world) []turn {
			a := w.say("done", `read {"a":1}`)
			a.emit = append(append(w.pieces(&a.out), retry), a.emit...)
			return []turn{a, w.say("done")}
		}, reason.Completed, 0, nil, nil},
		"same id twice": {"the second call has another id", func(w *world) []turn {
			a := w.say("", `read {"a":1}`, `read {"b":1}`)
			a.out.Calls[1].ID = a.out.Calls[0].ID
			a.emit = nil
			return []turn{a, w.say("done")}
		}, reason.Completed, 0, nil, nil},
		"model error": {"the run fails with the same words", func(w *world) []turn {
			return []turn{w.say("", `read {}`), {err: reason.New(reason.ModelError, "no usable answer").WithHint("ask somebody"), emit: []message.Delta{{Kind: message.DeltaText, Text: "half"}}}}
		}, reason.ModelError, 0, nil, nil},
		"broken tool": {"a tool that cannot be asked ends the run and its other calls", func(w *world) []turn {
			return []turn{w.say("", `wait {}`, `broken {}`, `wait {"b":1}`, `x {}`)}
		}, reason.ToolError, 0, nil, nil},
		"steps": {"the closing request has no tools", func(w *world) []turn {
			return []turn{w.say("", `read {"a":1}`), w.say("", `read {"a":2}`), w.say("partly", `read {"a":3}`)}
		}, reason.MaxSteps, 0, nil, func(c *loop.Config) { c.Limits.MaxSteps = 2 }},
		"loop": {"the guard stops the run", func(w *world) []turn {
			return []turn{w.say("", `read {}`), w.say("", `read {}`), w.say("", `read {}`)}
		}, reason.LoopDetected, 0, nil, nil},
		"loop, asked": {"the guard asks", func(w *world) []turn {
			return []turn{w.say("", `read {}`), w.say("", `read {}`), w.say("", `read {}`), w.say("", `deny {}`), w.say("done")}
		}, reason.Completed, 0, nil, func(c *loop.Config) { c.Guard.Act = loop.GuardAsk }},
		"stuck text": {"a text that repeats itself is stopped in the middle", func(w *world) []turn {
			a := w.say(strings.Repeat(strings.Repeat("all work and no play ", 12)+"\n", 400))
			for a.emit == nil {
				a.emit = w.pieces(&a.out)
			}
			return []turn{a}
		}, reason.LoopDetected, 0, nil, nil},
		"tokens": {"a budget", func(w *world) []turn {
			return []turn{w.say("", `read {}`), w.say("done")}
		}, reason.BudgetExceeded, 0, nil, func(c *loop.Config) { c.Limits.MaxTokens = 20 }},
		"uncounted": {"answers that nobody counts are guessed again", func(w *world) []turn {
			a, b := w.say("one", `read {}`), w.say("two", `read {"b":1}`)
			for _, t := range []*turn{&a, &b} {
				t.out.Usage, t.out.Uncounted = message.Usage{}, true
			}
			return []turn{a, b, w.say("done")}
		}, reason.Completed, 0, nil, func(c *loop.Config) { c.Limits.MaxTokens = 100_000 }},
		"correction": {"the answer breaks its contract, then keeps it", func(w *world) []turn {
			a := w.say("wrong")
			a.out.Warnings = []string{"odd usage"}
			return []turn{a, w.say("done")}
		}, reason.Completed, 0, nil, func(c *loop.Config) { c.Answer = wantsDone }},
		"no contract": {"corrections are used up", func(w *world) []turn {
			return []turn{w.say("wrong"), w.say("wrong"), w.say("wrong")}
		}, reason.OutputInvalid, 0, nil, func(c *loop.Config) { c.Answer = wantsDone }},
		"compaction": {"the window is full", func(w *world) []turn {
			return []turn{w.say("", `read {"a":"`+long+`"}`), w.say("notes"), w.say("done")}
		}, reason.Completed, 0, nil, compacting},
		"overflow": {"the provider refuses a request, and takes a shorter one", func(w *world) []turn {
			return []turn{
				w.say("", `read {"a":"`+long+`"}`), {err: reason.New(reason.ContextExhausted, "too long")}, w.say("notes"), w.say("done"),
			}
		}, reason.Completed, 0, nil, func(c *loop.Config) { c.Context = loop.Context{AtPercent: 80, KeepRecent: 10} }},
		"exhausted": {"and refuses the shorter one, too", func(w *world) []turn {
			tooLong := turn{err: reason.New(reason.ContextExhausted, "too long")}
			return []turn{w.say("", `read {"a":"`+long+`"}`), tooLong, w.say("notes"), tooLong}
		}, reason.ContextExhausted, 0, nil, func(c *loop.Config) { c.Context = loop.Context{AtPercent: 80, KeepRecent: 10} }},
		"stopped while it answers": {"what was written so far is kept", func(w *world) []turn {
			a := w.say("half an answer", `read {}`)
			a.block = true
			return []turn{a}
		}, reason.Cancelled, 0, cancelled, nil},
		"stopped while it works": {"calls that ran are cancelled, others never begin", func(w *world) []turn {
			return []turn{w.say("", `read {"a":1}`, `wait {}`, `ask-forever {}`, `stop {}`, `x {}`)}
		}, reason.Cancelled, 0, cancelled, nil},
		"out of time": {"a deadline is no signal", func(w *world) []turn {
			return []turn{w.say("", `stop {}`)}
		}, reason.DeadlineExceeded, 0, reason.New(reason.DeadlineExceeded, "limits.timeout of 1s passed").WithHint("raise it"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*loop.Config) {}
			}
			for seed := range uint64(8) { // each streams and takes its time otherwise
				w := newWorld(t, seed)
				w.answers, w.stopAt, w.why = c.turns(w), c.stopAt, c.why
				recorded := w.live(change)
				if f := recorded.Events[len(recorded.Events)-1].Data.(event.RunFinished); f.Reason != string(c.want) {
					t.Fatalf("%s: seed %d: the run ended %s (%s), want %s", c.reason, seed, f.Reason, f.Message, c.want)
				}
				same(t, recorded, change)
				if t.Failed() {
					t.Fatalf("%s: seed %d", c.reason, seed)
				}
			}
		})
	}
}

var wantsDone = loop.Answer{Retries: 1, Check: func(text string) string {
	if text == "done" {
		return ""
	}
	return "it is not done"
}}

// TestAnyRunStoppedAnywhereIsLivedAgain makes runs up and stops them after any of
// their events.
func TestAnyRunStoppedAnywhereIsLivedAgain(t *testing.T) {
	tools := []string{`read {"n":%d}`, `read {"m":%d}`, `x-%[1]d {}`, `coerce {"n":"%d"}`, `no {"n":%d}`, `err {"n":%d}`, `ask {"n":%d}`, `ask-nobody {"n":%d}`, `deny {"n":%d}`, `turn {"n":%d}`, `withheld {"n":%d}`}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(t, seed)
		for step := range 1 + r.IntN(5) {
			var calls []string
			for range r.IntN(4) {
				calls = append(calls, fmt.Sprintf(tools[r.IntN(len(tools))], r.IntN(1000)))
			}
			text := strings.Repeat("word ", r.IntN(30))
			a := w.say(text, calls...)
			if step == 0 && r.IntN(3) == 0 {
				a.out.Reasoning = strings.Repeat("thought ", r.IntN(20))
				a.emit = w.pieces(&a.out)
			}
			w.answers = append(w.answers, a)
		}
		if r.IntN(3) > 0 {
			w.stopAt, w.why = 3+r.IntN(60), reason.New(reason.Cancelled, "stopped")
		}
		same(t, w.live())
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestTheFirstDifferenceIsNamed(t *testing.T) {
	w := newWorld(t, 1)
	w.answers = []turn{w.say("I look.", `read {"a":1}`), w.say("", `ask {"command":"ls"}`), w.say("done")}
	recorded := w.live()
	id := w.events[findCall(t, w.events, "ask")].Call
	for name, c := range map[string]struct {
		reason string
		// forge changes the recording so that the loop, which does what it did,
		// differs from it.
		forge  func(event.Payload) event.Payload
		change func(*loop.Config)
		want   string
	}{
		"arguments": {"the intent", func(p event.Payload) event.Payload {
			if d, ok := p.(event.ToolCall); ok && d.Tool == "ask" {
				d.Args = json.RawMessage(`{"command":"ls -l"}`)
				return d
			}
			return p
		}, nil, `step 2, call ` + id + ` (ask): arguments differ: recorded {"command":"ls -l"}, now {"command":"ls"} (fix.jsonl:`},
		"limits": {"the run ends before the recorded one", nil, func(c *loop.Config) { c.Limits.MaxSteps = 2 }, `step 3: the request differs in whether tools are forbidden: recorded false, now true (fix.jsonl:`},
		"budget": {"and is not even asked", nil, func(c *loop.Config) { c.Limits.MaxTokens = 20 }, `the run ends early: recorded step 2 begins, now the run ends: BudgetExceeded (limits.maxTokens is 20;`},
		"end": {"the answer", func(p event.Payload) event.Payload {
			if d, ok := p.(event.RunFinished); ok {
				d.Output = "undone"
				return d
			}
			return p
		}, nil, `the end differs in output: recorded "undone", now "done"`},
		"decision": {"an order of events", func(p event.Payload) event.Payload {
			if d, ok := p.(event.ToolCall); ok && d.Tool == "read" {
				return event.ToolError{ToolResult: message.ToolResult{Code: message.CodeDenied, Text: "no\nno"}}
			}
			return p
		}, nil, `(read): another course: recorded the error denied: "no\nno", now read runs`},
		"summary": {"a window", nil, func(c *loop.Config) { c.Context = loop.Context{Window: 1, AtPercent: 50} }, `step 2: another course: recorded step 2 begins, now a summary is asked for`},
	} {
		t.Run(name, func(t *testing.T) {
			forged := *recorded
			forged.Events = nil
			for _, e := range recorded.Events {
				if c.forge != nil {
					e.Data = c.forge(e.Data)
				}
				forged.Events = append(forged.Events, e)
			}
			if c.change == nil {
				c.change = func(*loop.Config) {}
			}
			p, run, d := again(t, &forged, Options{Patience: 2 * time.Second}, c.change)
			if d == nil || !strings.Contains(d.Error(), c.want) {
				t.Fatalf("%s: got %v, want %s", c.reason, d, c.want)
			}
			f := run.Finished
			if f.Reason != string(reason.ReplayDiverged) || f.ExitCode != 7 || f.Message != d.Error() || f.Hint == "" || reason.Of(d) != reason.ReplayDiverged {
				t.Errorf("%s: the run ends %+v", c.reason, f)
			}
			if told := p.Told(); told[len(told)-1].Type() != event.TypeRunFinished || d.Line < recorded.Line(0) || d.File != "dir/fix.jsonl" {
				t.Errorf("%s: the end is missing, or the place is wrong: %+v", c.reason, d)
			}
		})
	}
}

func findCall(t *testing.T, events []event.Event, tool string) int {
	t.Helper()
	for i, e := range events {
		if d, ok := e.Data.(event.ToolCall); ok && d.Tool == tool {
			return i
		}
	}
	t.Fatalf("no call of %s", tool)
	return 0
}

func TestACheckThatHasChangedIsFound(t *testing.T) {
	w := newWorld(t, 1)
	w.answers = []turn{w.say("", `read {"a":1}`), w.say("done")}
	recorded := w.live()
	stricter := func(req message.CallRequest) (message.Checked, error) {
		return message.Checked{}, &message.CallError{Code: message.CodeSchema, Text: "/a: want a string"}
	}
	_, _, d := again(t, recorded, Options{Check: stricter})
	if d == nil || d.Step != 1 || d.Tool != "read" || !strings.Contains(d.Error(), `recorded {"a":1}, now nothing`) {
		t.Errorf("got %v", d)
	}
	broken := func(message.CallRequest) (message.Checked, error) { return message.Checked{}, errors.New("no schema") }
	if _, _, d = again(t, recorded, Options{Check: broken}); d == nil || !strings.Contains(d.Error(), "the run ends") {
		t.Errorf("got %v", d)
	}
}

func TestWhatTheModelIsToldAtFirstIsHeldAgainstTheRecording(t *testing.T) {
	w := newWorld(t, 1)
	w.answers = []turn{w.say("done")}
	recorded := w.live()
	p, err := New(recorded, func(error) {}, Options{Check: check})
	if err != nil {
		t.Fatal(err)
	}
	p.Drifted(Drift{What: "the instructions differ", Recorded: `"a"`, Now: `"b"`})
	_, d := p.End(event.RunFinished{})
	if d == nil || d.Error() != `step 1: the instructions differ: recorded "a", now "b" (fix.jsonl:6)` {
		t.Errorf("got %v", d)
	}
}

func TestARecordingWithoutAnEndIsRefused(t *testing.T) {
	w := newWorld(t, 1)
	w.answers = []turn{w.say("done")}
	whole := w.live().Events
	for name, events := range map[string][]event.Event{
		"no end":     whole[:len(whole)-1],
		"no request": {whole[0], {Seq: 2, Run: "r-1", Time: whole[0].Time, Data: event.RunFinished{Phase: "Failed"}}},
	} {
		w.events = events
		_, err := New(w.record(), func(error) {}, Options{Check: check})
		if _, damaged := errors.AsType[*cassette.DamageError](err); !damaged || reason.Of(err) != reason.ReplayDiverged {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A forged recording may wait for what never comes.
func TestNothingIsWaitedForForEver(t *testing.T) {
	w := newWorld(t, 3)
	w.answers = []turn{w.say("", `read {"a":1}`, `read {"b":1}`), w.say("done")}
	recorded := w.live()
	// The first result is said to have come before the other call was judged, which
	// the loop never does.
	var forged []event.Event
	var late []event.Event
	held := recorded.Events[findCall(t, recorded.Events, "read")].Call
	for _, e := range recorded.Events {
		if e.Call == held && (e.Type() == event.TypeToolResult || e.Type() == event.TypeToolCall || e.Type() == event.TypeToolProgress) {
			late = append(late, e)
			continue
		}
		forged = append(forged, e)
	}
	end := forged[len(forged)-1]
	forged = append(append(forged[:len(forged)-1], late...), end)
	for i := range forged {
		forged[i].Seq = int64(i + 1)
	}
	w.events = forged
	_, _, d := again(t, w.record(), Options{Patience: 50 * time.Millisecond})
	if d == nil || !strings.Contains(d.Error(), "nothing within 50ms") {
		t.Error(d)
	}
}

// TestAForgedRecordingEndsTheReplay mixes events of sound recordings up: whatever
// comes of it comes soon.
func TestAForgedRecordingEndsTheReplay(t *testing.T) {
	diverged := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := newWorld(t, seed)
		w.answers = []turn{w.say("I look.", `read {"a":1}`, `ask {"b":1}`, `x {}`), w.say("", `deny {}`, `err {"c":1}`), w.say("done")}
		recorded := w.live()
		events := append([]event.Event(nil), recorded.Events...)
		for range 1 + r.IntN(3) {
			i, k := 1+r.IntN(len(events)-2), 1+r.IntN(len(events)-2)
			switch r.IntN(4) {
			case 0:
				events = append(events[:i], events[i+1:]...)
			case 1:
				events[i], events[k] = events[k], events[i]
			case 2:
				events[i].Data = events[k].Data
			case 3:
				events[i].Call, events[i].Message = events[k].Call, events[k].Message
			}
		}
		for i := range events {
			events[i].Seq = int64(i + 1)
		}
		w.events = events
		if _, err := New(w.record(), func(error) {}, Options{Check: check}); err != nil {
			continue // no request is left
		}
		start := time.Now()
		if _, _, d := again(t, w.record(), Options{Patience: 20 * time.Millisecond}); d != nil {
			diverged++
		}
		if took := time.Since(start); took > time.Minute {
			t.Fatalf("seed %d: the replay took %v", seed, took)
		}
	}
	if diverged < 75 {
		t.Errorf("%d of 150 forged recordings were noticed", diverged)
	}
}

func TestLongValuesAreShownAroundTheirFirstDifference(t *testing.T) {
	a := strings.Repeat("ä", 500) + "X" + strings.Repeat("b", 500)
	b := strings.Repeat("ä", 500) + "Y" + strings.Repeat("b", 500)
	x, y := Around(a, b)
	if !strings.Contains(x, "X") || !strings.Contains(y, "Y") || len(x) > 200 || !strings.HasPrefix(x, "…ä") || !strings.HasSuffix(x, "b…") {
		t.Errorf("got %q and %q", x, y)
	}
	if x, y = Around("short", "shorter"); x != "short" || y != "shorter" {
		t.Errorf("got %q and %q", x, y)
	}
	if x, y = Around(a, a[:100]); !strings.HasSuffix(x, "…") || y == "" {
		t.Errorf("got %q and %q", x, y)
	}
}
