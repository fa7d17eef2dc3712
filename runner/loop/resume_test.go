package loop

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

// resumed returns a world that continues after the first events of another.
func (w *world) resumed(events []event.Event) (*world, *view.Run) {
	w.t.Helper()
	next := newWorld(w.t)
	next.decide, next.ask, next.run = w.decide, w.ask, w.run
	next.events = append(next.events, events...)
	v := &view.Run{}
	for _, e := range events {
		if err := v.Apply(e); err != nil {
			w.t.Fatal(err)
		}
	}
	e, err := journal{next}.Append(event.Event{Data: event.RunResumed{Attempt: v.Attempt + 1}})
	if err == nil {
		err = v.Apply(e)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return next, v
}

// answeredBefore counts the answers that are complete in the journal.
func answeredBefore(events []event.Event) int {
	n := 0
	for _, e := range events {
		if e.Type() == event.TypeModelResponse {
			n++
		}
	}
	return n
}

// A run that is killed after any of its events is resumed and comes to the same
// end: no call that has a result runs again, and none that may not.
func TestResumeAfterEveryEvent(t *testing.T) {
	text := calls(`a {"n":1}`, `alone {}`)
	text.out.Text = "I begin"
	wrong := say("not what was asked for")
	answers := []answer{text, calls(`never {"n":2}`, `again {"n":3}`), wrong, calls(`none {}`), say("done")}
	check := Answer{Retries: 2, Check: func(text string) string {
		if text != "done" {
			return "say done"
		}
		return ""
	}}
	whole := newWorld(t, answers...)
	if end := whole.start(t.Context(), func(c *Config) { c.Answer = check }); end.Output != "done" {
		t.Fatalf("undisturbed: %+v", end)
	}
	for n := 1; n <= len(whole.events); n++ {
		t.Run(fmt.Sprintf("%d %s", n, whole.events[n-1].Type()), func(t *testing.T) {
			w, v := whole.resumed(whole.events[:n])
			w.t = t
			w.answers = answers[answeredBefore(whole.events[:n]):]
			var states []string
			before := map[string]message.ToolState{}
			for _, m := range v.Messages {
				for _, c := range m.Calls() {
					before[c.CallID] = c.State
				}
			}
			end := w.start(t.Context(), func(c *Config) { c.View, c.Answer = v, check })
			if end.Reason != reason.Completed || end.Output != "done" {
				t.Errorf("end %+v", end)
			}
			for _, id := range w.ran() {
				switch state := before[id]; {
				case state == message.StateCompleted, state == message.StateError:
					t.Errorf("%s ran again", id)
				case state == message.StateRunning && !strings.Contains(id, "again"):
					t.Errorf("%s ran although it may have happened", id)
				}
			}
			for _, m := range v.Messages {
				for _, c := range m.Calls() {
					states = append(states, c.CallID+" "+string(c.State))
					wantUnknown := before[c.CallID] == message.StateRunning && !strings.Contains(c.CallID, "again")
					if got := c.Result.Code == message.CodeUnknown; got != wantUnknown {
						t.Errorf("%s is %+v, was %s", c.CallID, c.Result, before[c.CallID])
					}
				}
				if m.Open() {
					t.Errorf("message %s is left open", m.ID)
				}
			}
			if len(states) != 5 || v.Steps != 5 {
				t.Errorf("%d steps, calls %v", v.Steps, states)
			}
			if got := texts(w.appended); !cmp.Equal(got, texts(whole.appended)) {
				t.Errorf("conversation (-undisturbed +resumed):\n%s", cmp.Diff(texts(whole.appended), got))
			}
		})
	}
}

// texts returns the messages with their roles, in order.
func texts(messages []*message.Message) []string {
	var all []string
	for _, m := range messages {
		line := string(m.Role) + ": " + m.Text()
		for _, c := range m.Calls() {
			line += " " + c.CallID
		}
		all = append(all, line)
	}
	return all
}

func TestUnknownCallIsAskedAbout(t *testing.T) {
	whole := newWorld(t, calls(`never {}`), say("done"))
	whole.start(t.Context())
	cut := 0
	for i, e := range whole.events {
		if e.Type() == event.TypeToolCall {
			cut = i + 1
		}
	}
	for name, c := range map[string]struct {
		reason string
		answer message.Answer
		ran    int
		code   message.ErrorCode
	}{
		"yes":     {"a plain yes runs it once more", message.Answer{State: message.Approved}, 1, ""},
		"no":      {"a no leaves it unknown, and the run goes on", message.Answer{State: message.Rejected}, 0, message.CodeUnknown},
		"nobody":  {"so does silence", message.Answer{State: message.Unanswered}, 0, message.CodeUnknown},
		"suspend": {"a run that waits here would wait for ever", message.Answer{State: message.Unanswered, Suspend: true}, 0, message.CodeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			w, v := whole.resumed(whole.events[:cut])
			w.t, w.answers = t, []answer{say("done")}
			var asked []message.Question
			w.ask = func(_ context.Context, q message.Question) (message.Answer, error) {
				asked = append(asked, q)
				return c.answer, nil
			}
			end := w.start(t.Context(), func(cfg *Config) { cfg.View = v })
			call := v.Call("c0-never")
			if end.Output != "done" || len(asked) != 1 || !asked[0].Unknown || len(w.ran()) != c.ran || call.Result.Code != c.code {
				t.Errorf("%s: end %+v, asked %+v, ran %v, call %+v", c.reason, end, asked, w.ran(), call.Result)
			}
			if c.ran > 0 && call.Attempt != 2 {
				t.Errorf("attempt %d, want 2", call.Attempt)
			}
		})
	}
}

func TestApprovalBeforeTheCrashHolds(t *testing.T) {
	whole := newWorld(t, calls(`a {}`), say("done"))
	whole.decide = func(message.ToolCall) (message.Decision, error) {
		return message.Decision{Action: message.Ask, Rule: "p/r", Hash: "h"}, nil
	}
	whole.ask = func(context.Context, message.Question) (message.Answer, error) {
		return message.Answer{State: message.Approved, By: "terminal"}, nil
	}
	whole.start(t.Context())
	for i, e := range whole.events {
		if e.Type() != event.TypeApprovalDecided && e.Type() != event.TypeApprovalRequested {
			continue
		}
		w, v := whole.resumed(whole.events[:i+1])
		w.answers = []answer{say("done")}
		asked := 0
		w.ask = func(context.Context, message.Question) (message.Answer, error) {
			asked++
			return message.Answer{State: message.Approved}, nil
		}
		want := 1 // an open question is asked again
		if e.Type() == event.TypeApprovalDecided {
			want = 0
		}
		if end := w.start(t.Context(), func(c *Config) { c.View = v }); end.Output != "done" || asked != want || len(w.ran()) != 1 {
			t.Errorf("after %s: asked %d times, want %d; ran %v", e.Type(), asked, want, w.ran())
		}
	}
}

func TestSuspendedRunGoesOnWhereItStopped(t *testing.T) {
	whole := newWorld(t, calls(`a {}`, `b {}`), say("done"))
	whole.decide = func(c message.ToolCall) (message.Decision, error) {
		if c.Tool == "b" {
			return message.Decision{Action: message.Ask, Rule: "p/r", Hash: "h"}, nil
		}
		return message.Decision{Action: message.Allow}, nil
	}
	whole.ask = func(context.Context, message.Question) (message.Answer, error) {
		return message.Answer{State: message.Unanswered, Suspend: true}, nil
	}
	if end := whole.start(t.Context()); !end.Suspended || end.Reason != reason.ApprovalRequired {
		t.Fatalf("end %+v", end)
	}
	events := append(whole.events, event.Event{Seq: int64(len(whole.events) + 1), Run: "r", Data: event.RunFinished{Phase: view.Suspended}})
	w, v := whole.resumed(events)
	w.answers = []answer{say("done")}
	w.ask = func(context.Context, message.Question) (message.Answer, error) {
		return message.Answer{State: message.Approved}, nil
	}
	end := w.start(t.Context(), func(c *Config) { c.View = v })
	if end.Output != "done" || !cmp.Equal(w.ran(), []string{"c1-b"}) {
		t.Errorf("end %+v, ran %v", end, w.ran())
	}
}

// What ended the run ends it as well when the process died before it could say so.
func TestEndOfARunSurvivesACrash(t *testing.T) {
	for name, c := range map[string]struct {
		reject  bool
		answers []answer
		want    reason.Reason
	}{
		"a person's end": {true, []answer{calls(`a {}`)}, reason.Denied},
		"a loop":         {false, []answer{calls(`a {}`), calls(`a {}`), calls(`a {}`)}, reason.LoopDetected},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.answers...)
			if c.reject {
				w.decide = func(message.ToolCall) (message.Decision, error) { return message.Decision{Action: message.Ask}, nil }
				w.ask = func(context.Context, message.Question) (message.Answer, error) {
					return message.Answer{State: message.Rejected, EndRun: true}, nil
				}
			}
			if end := w.start(t.Context()); end.Reason != c.want {
				t.Fatalf("undisturbed: %+v", end)
			}
			again, v := w.resumed(w.events)
			if end := again.start(t.Context(), func(cfg *Config) { cfg.View = v }); end.Reason != c.want || len(again.requests) != 0 {
				t.Errorf("end %+v after %d requests", end, len(again.requests))
			}
		})
	}
}

func TestStepLimitHoldsOverAResume(t *testing.T) {
	whole := newWorld(t, calls(`a {"n":1}`), calls(`a {"n":2}`), say("partial"))
	whole.start(t.Context(), func(c *Config) { c.Limits.MaxSteps = 2 })
	for n := 1; n <= len(whole.events); n++ {
		w, v := whole.resumed(whole.events[:n])
		w.answers = []answer{calls(`a {"n":1}`), calls(`a {"n":2}`), say("partial")}[answeredBefore(whole.events[:n]):]
		end := w.start(t.Context(), func(c *Config) { c.View, c.Limits.MaxSteps = v, 2 })
		if end.Reason != reason.MaxSteps || end.Output != "partial" || v.Steps != 3 {
			t.Errorf("after event %d (%s): %+v in %d steps", n, whole.events[n-1].Type(), end, v.Steps)
		}
	}
}

func TestStoppedRunKeepsWhatWasStreamed(t *testing.T) {
	a := answer{block: true, emit: []message.Delta{
		{Kind: message.DeltaText, Text: "half "},
		{Kind: message.DeltaText, Text: "an answer"},
		{Kind: message.DeltaTool, Tool: "a", Call: "open", Text: "{"},
	}}
	w := newWorld(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	var cfg Config
	w.note("")
	stop := func(c *Config) {
		cfg = *c
		c.Journal = cancelAfter{journal{w}, event.TypeToolInputStart, cancel}
	}
	end := w.start(ctx, stop)
	if end.Reason != reason.Cancelled || end.Output != "half an answer" {
		t.Errorf("end %+v", end)
	}
	if c := cfg.View.Call("open"); c.State != message.StateError || c.Result.Code != message.CodeCancelled {
		t.Errorf("the call that was being written is %+v", c)
	}
	if err := cfg.View.Apply(event.Event{Data: event.RunFinished{Phase: view.Cancelled}}); err != nil {
		t.Fatal(err)
	}
	if m := cfg.View.Message(); m.Error != message.Aborted || m.Text() != "half an answer" || m.Open() {
		t.Errorf("message %+v", m)
	}
}

// cancelAfter cancels when an event of a type has been appended.
type cancelAfter struct {
	journal
	after  event.Type
	cancel context.CancelFunc
}

func (c cancelAfter) Append(e event.Event) (event.Event, error) {
	e, err := c.journal.Append(e)
	if e.Type() == c.after {
		c.cancel()
	}
	return e, err
}
