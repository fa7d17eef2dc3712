package loop

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

// mail is an inbox; its ids are the texts.
type mail struct {
	w    *world
	left []message.Incoming
	// arrives returns the messages that have come when the run takes them, and
	// when it wants to close.
	arrives func(looks, closes int) []string
	// stuck is set when there is a message that cannot be taken.
	stuck         bool
	looks, closes int
	heard         []string
}

func (m *mail) deliver() {
	if m.arrives == nil {
		return
	}
	for _, text := range m.arrives(m.looks, m.closes) {
		m.left = append(m.left, message.Incoming{ID: text, Text: text, By: "jane"})
	}
}

func (m *mail) Take(context.Context) []message.Incoming {
	m.looks++
	m.deliver()
	return slices.Clone(m.left)
}

func (m *mail) Heard(messages []message.Incoming) {
	m.w.mu.Lock() // the journal is synced behind the loop's back
	defer m.w.mu.Unlock()
	for _, h := range messages {
		at := slices.IndexFunc(m.w.events, func(e event.Event) bool {
			d, ok := e.Data.(event.MessageReceived)
			return ok && d.ID == h.ID
		})
		if at < 0 || m.w.synced <= at {
			m.w.t.Errorf("%s is forgotten before it is durable: event %d of %d", h.ID, at, m.w.synced)
		}
		m.heard = append(m.heard, h.ID)
		m.left = slices.DeleteFunc(m.left, func(l message.Incoming) bool { return l.ID == h.ID })
	}
}

func (m *mail) Close() bool {
	m.closes++
	m.deliver()
	return len(m.left) == 0 && !m.stuck
}

// at gives the texts when the run looks for the nth time.
func at(n int, texts ...string) func(int, int) []string {
	return func(looks, closes int) []string {
		if looks == n && closes == 0 {
			return texts
		}
		return nil
	}
}

func TestWhatPeopleSayStandsBetweenSteps(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		arrives func(int, int) []string
		want    []string
	}{
		"never": {
			"a run that nobody talks to is as it was", nil,
			[]string{"user: do it", "assistant:  c0-a c1-b", "assistant: done"},
		},
		"at once": {
			"before the first request", at(1, "hurry"),
			[]string{"user: do it", "user: hurry", "assistant:  c0-a c1-b", "assistant: done"},
		},
		"while calls run": {
			"behind their results", at(2, "one", "two"),
			[]string{"user: do it", "assistant:  c0-a c1-b", "user: one", "user: two", "assistant: done"},
		},
		"with the answer": {
			"the answer is not the last", at(3, "more"),
			[]string{"user: do it", "assistant:  c0-a c1-b", "assistant: done", "user: more", "assistant: more done"},
		},
		"behind the last look": {
			"the inbox does not close", func(_, closes int) []string {
				if closes == 1 {
					return []string{"more"}
				}
				return nil
			},
			[]string{"user: do it", "assistant:  c0-a c1-b", "assistant: done", "user: more", "assistant: more done"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, calls(`a {}`, `b {}`), say("done"), say("more done"))
			m := &mail{w: w}
			if c.arrives != nil {
				once := map[string]bool{}
				m.arrives = func(looks, closes int) (fresh []string) {
					for _, text := range c.arrives(looks, closes) {
						if !once[text] {
							once[text], fresh = true, append(fresh, text)
						}
					}
					return fresh
				}
			}
			var v *view.Run
			end := w.start(t.Context(), func(cfg *Config) { cfg.Inbox, v = m, cfg.View })
			if end.Reason != reason.Completed || len(m.left) > 0 || m.closes == 0 {
				t.Errorf("%s: %+v, left %v", c.reason, end, m.left)
			}
			if d := cmp.Diff(c.want, texts(v.Messages)); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, d)
			}
			// The model had all of it but its last words.
			if d := cmp.Diff(c.want[:len(c.want)-1], texts(w.appended)); d != "" {
				t.Errorf("the model was told (-want +got):\n%s", d)
			}
		})
	}
}

func TestTheSchemaHoldsForTheLastAnswer(t *testing.T) {
	only := func(text string) string {
		if text != "right" {
			return "say right"
		}
		return ""
	}
	// One retry: used up before the message, and there again behind it.
	w := newWorld(t, say("wrong"), say("wrong again"), say("still wrong"), say("right"))
	m := &mail{w: w, arrives: at(4, "and?")} // with the second answer
	end := w.start(t.Context(), func(c *Config) { c.Inbox, c.Answer = m, Answer{Check: only, Retries: 1} })
	if end.Reason != reason.Completed || end.Output != "right" || len(w.requests) != 4 {
		t.Errorf("%+v after %d requests", end, len(w.requests))
	}
}

func TestAMessageFollowsWhateverWouldHaveEndedTheAnswer(t *testing.T) {
	cut := say("half")
	cut.out.Finish = message.FinishLength
	filtered := say("")
	filtered.out.Finish = message.FinishContentFilter
	for name, first := range map[string]answer{"cut": cut, "filtered": filtered, "empty": say("")} {
		w := newWorld(t, first, say(""), say("done"))
		m := &mail{w: w, arrives: at(2, "go on")}
		if end := w.start(t.Context(), func(c *Config) { c.Inbox = m }); end.Reason != reason.Completed || len(w.requests) != 3 {
			t.Errorf("%s: %+v after %d requests", name, end, len(w.requests))
		}
	}
}

func TestLimitsHoldForWhoIsToldMore(t *testing.T) {
	always := func(looks, closes int) []string { return []string{fmt.Sprint("more ", looks, " ", closes)} }
	t.Run("steps", func(t *testing.T) {
		answers := make([]answer, 20)
		for i := range answers {
			answers[i] = say("done")
		}
		w := newWorld(t, answers...)
		end := w.start(t.Context(), func(c *Config) { c.Inbox, c.Limits.MaxSteps = &mail{w: w, arrives: always}, 3 })
		if end.Reason != reason.MaxSteps || len(w.requests) != 4 || !w.requests[3].NoTools || end.Output != "done" {
			t.Errorf("%+v after %d requests", end, len(w.requests))
		}
		if want := "limits.maxSteps is 3 and a message that was sent to the run needed one more"; end.Message != want {
			t.Errorf("message %q, want %q", end.Message, want)
		}
	})
	t.Run("tokens", func(t *testing.T) {
		a := say("done")
		a.out.Usage = message.Usage{Input: 400, Output: 10}
		w := newWorld(t, a, a, a, a)
		end := w.start(t.Context(), func(c *Config) { c.Inbox, c.Limits.MaxTokens = &mail{w: w, arrives: always}, 1000 })
		if end.Reason != reason.BudgetExceeded || len(w.requests) != 2 || end.Output != "done" {
			t.Errorf("%+v after %d requests", end, len(w.requests))
		}
	})
	t.Run("time", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := newWorld(t, say("done"))
		m := &mail{w: w}
		end := w.start(ctx, func(c *Config) {
			c.Inbox = m
			c.Answer.Check = func(string) string { return "" }
			now := c.Now
			c.Now = func() time.Time { // the time is up with the answer
				if len(w.requests) > 0 && m.left == nil {
					m.left = []message.Incoming{{ID: "late", Text: "late"}}
					cancel(reason.New(reason.DeadlineExceeded, "the time is up"))
				}
				return now()
			}
		})
		if end.Reason != reason.Completed || end.Output != "done" || len(m.heard) > 0 {
			t.Errorf("%+v, heard %v", end, m.heard)
		}
	})
	t.Run("what cannot be taken", func(t *testing.T) {
		w := newWorld(t, say("done"))
		m := &mail{w: w, stuck: true}
		end := w.start(t.Context(), func(c *Config) { c.Inbox = m })
		if end.Reason != reason.Completed || m.closes != closings {
			t.Errorf("%+v after %d tries to close", end, m.closes)
		}
	})
	t.Run("a full disk", func(t *testing.T) {
		w := newWorld(t, calls(`a {}`), say("done"))
		m := &mail{w: w, arrives: at(2, "one")}
		_, err := Run(t.Context(), func() Config {
			cfg := w.config()
			cfg.Inbox = m
			w.run = func(context.Context, message.ToolCall) (*message.ToolResult, error) {
				return &message.ToolResult{Text: "ran"}, nil
			}
			w.review = func(_ message.ToolCall, r *message.ToolResult) (*message.ToolResult, error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.failing = errDisk
				return r, nil
			}
			return cfg
		}())
		if reason.Of(err) != reason.Internal || len(m.heard) > 0 {
			t.Errorf("%v, heard %v", err, m.heard)
		}
	})
}

// After a new message the model may make the same calls again; without one it
// may not.
func TestAMessageIsNoRepetition(t *testing.T) {
	same := calls(`a {}`)
	answers := func() (all []answer) {
		for i := range 4 {
			a := same
			a.out.Calls = []message.CallRequest{{ID: fmt.Sprint("c", i), Tool: "a", Args: "{}"}}
			all = append(all, a)
		}
		return append(all, say("done"))
	}
	w := newWorld(t, answers()...)
	if end := w.start(t.Context()); end.Reason != reason.LoopDetected {
		t.Errorf("nobody says anything: %+v", end)
	}
	w = newWorld(t, answers()...)
	if end := w.start(t.Context(), func(c *Config) { c.Inbox = &mail{w: w, arrives: at(3, "once more")} }); end.Reason != reason.Completed {
		t.Errorf("told to do it once more: %+v", end)
	}
}

// A run that is killed after any of its events, before or after Heard was
// called, has each message once, at its place.
func TestResumeHearsEachMessageOnce(t *testing.T) {
	answers := []answer{calls(`a {"n":1}`, `alone {}`), calls(`again {"n":3}`), say("first"), say("second")}
	// What is posted, and by which event somebody was led to do so.
	posts := []struct {
		text  string
		after event.Type
		nth   int
	}{{"hurry", event.TypeRunStarted, 1}, {"and mind this", event.TypeToolCall, 1}, {"and that", event.TypeToolCall, 2}, {"is that all?", event.TypeModelResponse, 3}}
	posted := func(w *world) func(int, int) []string {
		done := map[string]bool{}
		return func(int, int) (texts []string) {
			for _, p := range posts {
				seen := 0
				for _, e := range w.events {
					if e.Type() == p.after {
						seen++
					}
				}
				if !done[p.text] && seen >= p.nth {
					done[p.text], texts = true, append(texts, p.text)
				}
			}
			return texts
		}
	}
	whole := newWorld(t, answers...)
	var lived *view.Run
	if end := whole.start(t.Context(), func(c *Config) { c.Inbox, lived = &mail{w: whole, arrives: posted(whole)}, c.View }); end.Output != "second" {
		t.Fatalf("undisturbed: %+v", end)
	}
	want := []string{
		"user: do it", "user: hurry", "assistant:  c0-a c1-alone", "user: and mind this", "user: and that",
		"assistant:  c0-again", "assistant: first", "user: is that all?", "assistant: second",
	}
	if d := cmp.Diff(want, texts(lived.Messages)); d != "" {
		t.Fatalf("undisturbed (-want +got):\n%s", d)
	}
	for n := 1; n <= len(whole.events); n++ {
		t.Run(fmt.Sprintf("%d %s", n, whole.events[n-1].Type()), func(t *testing.T) {
			w, v := whole.resumed(whole.events[:n])
			w.t, w.synced = t, len(w.events) // so a resume begins
			w.answers = answers[answeredBefore(whole.events[:n]):]
			m := &mail{w: w, arrives: posted(w)} // all of it lies there still
			if end := w.start(t.Context(), func(c *Config) { c.View, c.Inbox = v, m }); end.Output != "second" {
				t.Errorf("end %+v", end)
			}
			counts := map[string]int{}
			for _, msg := range v.Messages {
				if msg.Role == message.RoleUser {
					counts[msg.Text()]++
				}
			}
			for _, p := range posts {
				if counts[p.text] != 1 {
					t.Errorf("%q stands there %d times", p.text, counts[p.text])
				}
			}
			if len(m.left) > 0 {
				t.Errorf("left in the inbox: %v", m.left)
			}
			for i, msg := range w.appended {
				for _, c := range msg.Calls() {
					if c.Result == nil {
						t.Errorf("message %d is told without the result of call %s", i, c.CallID)
					}
				}
			}
			told := texts(slices.DeleteFunc(slices.Clone(v.Messages), func(m *message.Message) bool { return m.Error != "" }))
			if d := cmp.Diff(told[:len(told)-1], texts(w.appended)); d != "" {
				t.Errorf("the model was told (-view +model):\n%s", d)
			}
		})
	}
}
