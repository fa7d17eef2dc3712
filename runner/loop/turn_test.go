package loop

import (
	"context"
	"fmt"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

// turn returns a world that goes on with another prompt behind the end of this one.
func (w *world) turn(answers ...answer) (*world, func(*Config)) {
	w.t.Helper()
	next := newWorld(w.t, answers...)
	next.decide, next.run = w.decide, w.run
	v := &view.Run{}
	for i, e := range w.events {
		if i > 0 && e.Type() == event.TypeRunStarted { // each start of a world writes one
			continue
		}
		next.events = append(next.events, e)
		if err := v.Apply(e); err != nil {
			w.t.Fatal(err)
		}
	}
	n := len(v.Turns) + 1
	for _, e := range []event.Event{
		{Data: event.RunFinished{Phase: view.Failed}},
		{Message: fmt.Sprint("user", n), Part: fmt.Sprint("prompt", n), Data: event.RunResumed{Attempt: n, Turn: &event.Turn{Number: n, Agent: "b", Prompt: "go on"}}},
	} {
		e, err := journal{next}.Append(e)
		if err == nil {
			err = v.Apply(e)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return next, func(c *Config) { c.View = v }
}

func counted(a answer, tokens int64) answer {
	a.out.Usage = message.Usage{Input: tokens}
	return a
}

// Every turn has the limits of its own, and reads what was said before.
func TestATurnHasItsOwnLimits(t *testing.T) {
	limits := func(c *Config) { c.Limits.MaxSteps, c.Limits.MaxTokens = 2, 1000 }
	w := newWorld(t, counted(calls("read {}"), 400), counted(say("one"), 500))
	if end := w.start(context.Background(), limits); end.Reason != reason.Completed {
		t.Fatalf("the first turn ended %s: %s", end.Reason, end.Message)
	}
	again := counted(calls("read {}"), 400)
	again.out.Calls[0].ID = "again"
	next, goOn := w.turn(again, counted(say("two"), 300))
	end := next.start(context.Background(), goOn, limits)
	if end.Reason != reason.Completed || end.Output != "two" {
		t.Errorf("the second turn ended %s with %q: %s", end.Reason, end.Output, end.Message)
	}
	if n := len(next.appended); n < 4 || next.appended[0].Text() != "do it" || next.appended[3].Text() != "go on" {
		t.Errorf("the model was told %d messages", n)
	}
	third, goOn := next.turn(counted(say("three"), 100))
	if end := third.start(context.Background(), goOn, func(c *Config) { c.Limits.MaxTokens = 1 }); end.Reason != reason.BudgetExceeded {
		t.Errorf("the third turn ended %s: its own limit holds", end.Reason)
	}
}

// What an earlier turn has said and was refused is not that of this one.
func TestATurnAnswersForItself(t *testing.T) {
	w := newWorld(t, calls("read {}"), say("one"))
	w.decide = func(message.ToolCall) (message.Decision, error) {
		return message.Decision{Action: message.Deny, Rule: "test/none"}, nil
	}
	if end := w.start(context.Background()); end.Reason != reason.Denied {
		t.Fatalf("the first turn ended %s", end.Reason)
	}
	next, goOn := w.turn(say(""), say(""))
	if end := next.start(context.Background(), goOn); end.Reason != reason.NoFinalAnswer || end.Output != "" {
		t.Errorf("a turn without an answer ended %s with %q", end.Reason, end.Output)
	}
	next, goOn = w.turn(say("two"))
	end := next.start(context.Background(), goOn, func(c *Config) { c.Answer.FailOnDenied = true })
	if end.Reason != reason.Completed || end.Output != "two" {
		t.Errorf("a turn without a refused call ended %s with %q", end.Reason, end.Output)
	}
}
