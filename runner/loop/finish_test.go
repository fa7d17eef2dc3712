package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

// ended is an answer with a finish of its own.
func ended(a answer, f message.Finish) answer {
	a.out.Finish = f
	return a
}

func TestWhatBecomesOfAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		answer answer
		ran    bool
		want   reason.Reason
		output string
	}{
		"whole call":             {"a call without arguments is one", ended(calls("a"), message.FinishToolCalls), true, reason.Completed, "done"},
		"cut call":               {"nothing says that it needs none", ended(calls("a"), message.FinishLength), false, reason.Completed, "done"},
		"cut arguments":          {"half of them are none", ended(calls(`a {"n":`), message.FinishLength), false, reason.Completed, "done"},
		"whole before the limit": {"what is closed cannot become longer", ended(calls(`a {"n":1}`), message.FinishLength), true, reason.Completed, "done"},
		"cut by a pause":         {"half a call is none", ended(calls("a"), message.FinishPause), false, reason.Completed, "done"},
		"filtered call":          {"the provider has taken it back", ended(calls(`a {"n":1}`), message.FinishContentFilter), false, reason.ContentFiltered, ""},
		"unknown call":           {"nobody knows what is missing", ended(calls(`a {"n":1}`), message.FinishUnknown), false, reason.ModelError, ""},
		"call without a finish":  {"nor here", ended(calls(`a {"n":1}`), ""), false, reason.ModelError, ""},
		"finish of tomorrow":     {"nor here", ended(calls(`a {"n":1}`), "tomorrow"), false, reason.ModelError, ""},
		"whole text":             {"it is the answer", say("all of it"), false, reason.Completed, "all of it"},
		"cut text":               {"half of it is kept", ended(say("half"), message.FinishLength), false, reason.OutputTruncated, "half"},
		"filtered text":          {"half of it is kept", ended(say("half"), message.FinishContentFilter), false, reason.ContentFiltered, "half"},
		"unknown text":           {"half of it is kept", ended(say("half"), message.FinishUnknown), false, reason.ModelError, "half"},
		"text without a finish":  {"half of it is kept", ended(say("half"), ""), false, reason.ModelError, "half"},
		"nothing, unknown":       {"an empty answer is asked for again only where it is whole", ended(say(""), message.FinishUnknown), false, reason.ModelError, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.answer, say("done"))
			end := w.start(t.Context())
			if end.Reason != c.want || end.Output != c.output {
				t.Errorf("%s: %+v, want %s and %q", c.reason, end, c.want, c.output)
			}
			if ran := slices.ContainsFunc(w.log, func(s string) bool { return strings.HasPrefix(s, "run ") }); ran != c.ran {
				t.Errorf("%s: the call ran: %v, want %v", c.reason, ran, c.ran)
			}
			for id, state := range states(t, w.events) {
				if state != message.StateCompleted && state != message.StateError {
					t.Errorf("call %s is left %s", id, state)
				}
			}
		})
	}
}

// states are those of the calls when the events are folded.
func states(t *testing.T, events []event.Event) map[string]message.ToolState {
	t.Helper()
	v, all := &view.Run{}, map[string]message.ToolState{}
	for _, e := range events {
		if err := v.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range v.Messages {
		for _, c := range m.Calls() {
			all[c.CallID] = c.State
		}
	}
	return all
}

var paused = []answer{ended(say("one "), message.FinishPause), ended(say("two "), message.FinishPause), say("three")}

func TestAPausedTurnGoesOn(t *testing.T) {
	w := newWorld(t, paused...)
	end := w.start(t.Context())
	if end.Reason != reason.Completed || end.Output != "one two three" {
		t.Errorf("%+v, want the text of the whole turn", end)
	}
	if len(w.requests) != 3 {
		t.Errorf("%d requests, want 3", len(w.requests))
	}
	if d := cmp.Diff([]string{"user: do it", "assistant: one ", "assistant: two "}, texts(w.appended)); d != "" {
		t.Errorf("the provider was sent (-want +got):\n%s", d)
	}
}

// A message that was sent during the turn waits until the turn is over.
func TestNothingComesBetweenThePartsOfATurn(t *testing.T) {
	w := newWorld(t, append(slices.Clone(paused), say("four"))...)
	end := w.start(t.Context(), func(c *Config) { c.Inbox = &mail{w: w, arrives: at(2, "and this")} })
	if end.Reason != reason.Completed || end.Output != "four" {
		t.Errorf("%+v", end)
	}
	want := []string{"user: do it", "assistant: one ", "assistant: two ", "assistant: three", "user: and this"}
	if d := cmp.Diff(want, texts(w.appended)); d != "" {
		t.Errorf("the provider was sent (-want +got):\n%s", d)
	}
}

func TestAPausedTurnIsTakenUpAfterEveryEvent(t *testing.T) {
	whole := newWorld(t, paused...)
	whole.start(t.Context())
	for n := 1; n <= len(whole.events); n++ {
		t.Run(fmt.Sprintf("%d %s", n, whole.events[n-1].Type()), func(t *testing.T) {
			w, v := whole.resumed(whole.events[:n])
			w.t = t
			w.answers = paused[answeredBefore(whole.events[:n]):]
			end := w.start(t.Context(), func(c *Config) { c.View = v })
			if end.Reason != reason.Completed || end.Output != "one two three" {
				t.Errorf("%+v", end)
			}
			if d := cmp.Diff([]string{"user: do it", "assistant: one ", "assistant: two "}, texts(w.appended)); d != "" {
				t.Errorf("the provider was sent (-want +got):\n%s", d)
			}
		})
	}
}

func TestATurnIsNotPausedForEver(t *testing.T) {
	pauses := slices.Repeat([]answer{ended(say("again "), message.FinishPause)}, 3*maxPauses)
	w := newWorld(t, pauses...)
	end := w.start(t.Context(), func(c *Config) { c.Limits.MaxSteps = 0 })
	if end.Reason != reason.ModelError || !strings.Contains(end.Message, "paused") || len(w.requests) != maxPauses {
		t.Errorf("%+v after %d requests", end, len(w.requests))
	}
	// A pause that says nothing has nothing to be sent back.
	w = newWorld(t, slices.Repeat([]answer{ended(say(""), message.FinishPause)}, 3)...)
	if end := w.start(t.Context()); end.Reason != reason.NoFinalAnswer || len(w.requests) != 2 {
		t.Errorf("%+v after %d requests", end, len(w.requests))
	}
	// Each pause is a step, and ends with those.
	w = newWorld(t, pauses...)
	if end := w.start(t.Context(), func(c *Config) { c.Limits.MaxSteps = 3 }); end.Reason != reason.MaxSteps {
		t.Errorf("%+v", end)
	}
}

// Half a summary would forget what the other half was about.
func TestHalfASummaryIsNone(t *testing.T) {
	half := ended(say("half a summary"), message.FinishUnknown)
	w, m := longRun(t, 10, 4000, half, half, half)
	end := w.start(t.Context(), func(c *Config) {
		c.Model, c.Context = m, Context{Window: 10_000, AtPercent: 80, KeepRecent: 2000}
	})
	if end.Reason != reason.ContextExhausted {
		t.Errorf("%+v", end)
	}
}
