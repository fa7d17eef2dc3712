package loop

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

func TestApprovalIsForOneQuestion(t *testing.T) {
	first := message.Decision{Action: message.Ask, Rule: "p/r", Hash: "h", Facts: []byte(`{"paths":["a"],"audit":["x"]}`)}
	other := func(change func(*message.Decision)) message.Decision {
		d := first
		change(&d)
		return d
	}
	for name, c := range map[string]struct {
		reason string
		again  message.Decision
		asked  int
	}{
		"same":      {"nothing has changed", first, 1},
		"arguments": {"another call, or another tool behind it", other(func(d *message.Decision) { d.Hash = "g" }), 2},
		"rule":      {"another reason to ask", other(func(d *message.Decision) { d.Rule = "p/s" }), 2},
		"facts":     {"it would touch something else", other(func(d *message.Decision) { d.Facts = []byte(`{"paths":["b"]}`) }), 2},
		"risk":      {"it is more dangerous than it was", other(func(d *message.Decision) { d.Risk = "R3" }), 2},
		"audit":     {"what a policy only notes is no part of the question", other(func(d *message.Decision) { d.Facts = []byte(`{"paths": ["a"]}`) }), 1},
		"message":   {"nor are the words in which it is asked", other(func(d *message.Decision) { d.Message = "now" }), 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, calls("a {}"), say("done"))
			w.decide = func(call message.ToolCall) (message.Decision, error) {
				if call.Again {
					return c.again, nil
				}
				return first, nil
			}
			asked := 0
			w.ask = func(context.Context, message.Question) (message.Answer, error) {
				asked++
				return message.Answer{State: message.Approved}, nil
			}
			w.start(t.Context())
			if asked != c.asked || len(w.ran()) != 1 {
				t.Errorf("%s: asked %d times, want %d; ran %v", c.reason, asked, c.asked, w.ran())
			}
		})
	}
}

func TestWhatKeepsChangingIsDenied(t *testing.T) {
	w := newWorld(t, calls("a {}"), say("done"))
	n := 0
	w.decide = func(message.ToolCall) (message.Decision, error) {
		n++
		return message.Decision{Action: message.Ask, Hash: fmt.Sprint(n)}, nil
	}
	asked := 0
	w.ask = func(context.Context, message.Question) (message.Answer, error) {
		asked++
		return message.Answer{State: message.Approved}, nil
	}
	w.start(t.Context())
	if r := w.result("c0-a"); asked != mostAsked || len(w.ran()) > 0 || r.Code != message.CodeDenied {
		t.Errorf("asked %d times, ran %v, result %+v", asked, w.ran(), r)
	}
}

func TestApprovalExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, calls("a {}", "b {}"), say("done"))
		w.decide = func(c message.ToolCall) (message.Decision, error) {
			if c.Tool == "b" {
				return message.Decision{Action: message.Allow}, nil
			}
			return message.Decision{Action: message.Ask, Hash: "h"}, nil
		}
		w.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
			if c.Tool == "b" {
				time.Sleep(time.Hour) // the only slot is taken for that long
			}
			return &message.ToolResult{Text: "ok"}, nil
		}
		asked := 0
		w.ask = func(context.Context, message.Question) (message.Answer, error) {
			asked++
			if asked == 1 {
				time.Sleep(time.Second) // b has begun
			}
			return message.Answer{State: message.Approved, ExpiresAt: time.Now().Add(time.Minute).UnixMilli()}, nil
		}
		w.start(t.Context(), func(c *Config) { c.Limits.MaxParallel, c.Now = 1, time.Now })
		if asked != 2 || len(w.ran()) != 2 {
			t.Errorf("asked %d times, want 2; ran %v", asked, w.ran())
		}
	})
}

func TestApprovalBeforeTheCrashExpires(t *testing.T) {
	decision := message.Decision{Action: message.Ask, Rule: "p/r", Hash: "h"}
	now := time.Now()
	for name, c := range map[string]struct {
		reason  string
		expires time.Time
		again   message.Decision
		asked   int
	}{
		"in time": {"the approval is used, once", now.Add(time.Hour), decision, 0},
		"late":    {"it is too old", now.Add(-time.Hour), decision, 1},
		"policy":  {"the rule is another", now.Add(time.Hour), message.Decision{Action: message.Ask, Rule: "p/s", Hash: "h"}, 1},
		"tool":    {"the tool is another", now.Add(time.Hour), message.Decision{Action: message.Ask, Rule: "p/r", Hash: "g"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			whole := newWorld(t, calls(`a {}`), say("done"))
			whole.decide = func(message.ToolCall) (message.Decision, error) { return decision, nil }
			whole.ask = func(context.Context, message.Question) (message.Answer, error) {
				return message.Answer{State: message.Approved, ExpiresAt: c.expires.UnixMilli()}, nil
			}
			whole.start(t.Context(), func(cfg *Config) { cfg.Now = func() time.Time { return now.Add(-2 * time.Hour) } })
			cut := 0
			for i, e := range whole.events {
				if e.Type() == event.TypeApprovalDecided {
					cut = i + 1
					break
				}
			}
			w, v := whole.resumed(whole.events[:cut])
			w.t, w.answers = t, []answer{say("done")}
			w.decide = func(message.ToolCall) (message.Decision, error) { return c.again, nil }
			asked := 0
			w.ask = func(context.Context, message.Question) (message.Answer, error) {
				asked++
				return message.Answer{State: message.Approved}, nil
			}
			w.start(t.Context(), func(cfg *Config) { cfg.View, cfg.Now = v, func() time.Time { return now } })
			if asked != c.asked || len(w.ran()) != 1 {
				t.Errorf("%s: asked %d times, want %d; ran %v", c.reason, asked, c.asked, w.ran())
			}
		})
	}
}

func TestQuestionSaysUntilWhen(t *testing.T) {
	w := newWorld(t, calls("a {}"), say("done"))
	now := time.UnixMilli(1_000_000)
	w.decide = func(message.ToolCall) (message.Decision, error) {
		return message.Decision{Action: message.Ask, Hash: "h"}, nil
	}
	var asked message.Question
	w.ask = func(_ context.Context, q message.Question) (message.Answer, error) {
		asked = q
		return message.Answer{State: message.Approved}, nil
	}
	w.start(t.Context(), func(c *Config) { c.AskTime, c.Now = time.Minute, func() time.Time { return now } })
	for _, e := range w.events {
		if d, ok := e.Data.(event.ApprovalRequested); ok && (d.ExpiresAt != 1_060_000 || asked.ExpiresAt != d.ExpiresAt) {
			t.Errorf("got %d in the event, %d in the question", d.ExpiresAt, asked.ExpiresAt)
		}
	}
}

// witness calls decided with each answer that is in the journal.
type witness struct {
	Approver
	decided func(call string, a message.Answer)
}

func (w witness) Decided(call string, a message.Answer) { w.decided(call, a) }

func TestWitnessIsToldWhenTheAnswerIsWritten(t *testing.T) {
	w := newWorld(t, calls("a {}"), say("done"))
	w.decide = func(message.ToolCall) (message.Decision, error) {
		return message.Decision{Action: message.Ask, Hash: "h"}, nil
	}
	w.ask = func(context.Context, message.Question) (message.Answer, error) {
		return message.Answer{State: message.Approved, Request: "ans-1"}, nil
	}
	var told []string
	w.start(t.Context(), func(c *Config) {
		c.Approver = witness{c.Approver, func(call string, a message.Answer) {
			last := w.events[len(w.events)-1]
			told = append(told, fmt.Sprint(call, " ", a.Request, " ", last.Type()))
		}}
	})
	if len(told) != 1 || told[0] != "c0-a ans-1 approval.decided" {
		t.Errorf("got %q", told)
	}
}

// TestAParkedQuestionKeepsItsDeadline continues a run that was left while it asked.
func TestAParkedQuestionKeepsItsDeadline(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	hash := "h"
	set := func(w *world) {
		w.decide = func(message.ToolCall) (message.Decision, error) {
			return message.Decision{Action: message.Ask, Hash: hash}, nil
		}
	}
	whole := newWorld(t, calls("a {}"), say("done"))
	set(whole)
	whole.ask = func(context.Context, message.Question) (message.Answer, error) {
		return message.Answer{State: message.Approved}, nil
	}
	clock := func(c *Config) { c.AskTime, c.Now = time.Minute, func() time.Time { return now } }
	whole.start(t.Context(), clock)
	asks := slices.IndexFunc(whole.events, func(e event.Event) bool { _, is := e.Data.(event.ApprovalRequested); return is })
	now = now.Add(40 * time.Second)
	for reason, c := range map[string]struct {
		parked bool
		hash   string
		until  int64
	}{
		"another process counted all the time":  {true, "h", 1_060_000},
		"no process counted":                    {false, "h", 1_100_000},
		"the call has become another one since": {true, "other", 1_100_000},
	} {
		w, v := whole.resumed(whole.events[:asks+1])
		hash = c.hash
		set(w)
		var until int64
		w.ask = func(_ context.Context, q message.Question) (message.Answer, error) {
			until = q.ExpiresAt
			return message.Answer{State: message.Approved}, nil
		}
		w.start(t.Context(), clock, func(cfg *Config) { cfg.View, cfg.Parked = v, c.parked })
		if until != c.until {
			t.Errorf("%s: the question waits until %d, want %d", reason, until, c.until)
		}
	}
}
