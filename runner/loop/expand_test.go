package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

// prompted makes the prompt of a run ask for calls, written as "tool {args}".
func prompted(w *world, list ...string) func(*Config) {
	return func(c *Config) {
		d, _ := w.events[0].Data.(event.RunStarted)
		for _, text := range list {
			tool, args, _ := strings.Cut(text, " ")
			d.Expansions = append(d.Expansions, message.Expansion{Text: "@" + tool, Tool: tool, Args: json.RawMessage(args)})
		}
		d.Expansions = append(d.Expansions, message.Expansion{Text: "@helper", Agent: "helper"})
		w.events[0].Data = d
		c.View = &view.Run{}
		if err := c.View.Apply(w.events[0]); err != nil {
			w.t.Fatal(err)
		}
	}
}

// again resumes the run of a world from its first n events.
func (w *world) again(n int, answers ...answer) (*world, func(*Config)) {
	w.t.Helper()
	next := newWorld(w.t, answers...)
	next.decide, next.run = w.decide, w.run
	v := &view.Run{}
	events := append(slices.Clone(w.events[:n]), event.Event{Run: "r", Data: event.RunResumed{Attempt: 2}})
	for _, e := range events {
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

func TestThePromptIsExpandedBeforeTheFirstRequest(t *testing.T) {
	w := newWorld(t, say("done"))
	end := w.start(context.Background(), prompted(w, `read {"path":"a"}`, `bash {"command":"ls"}`))
	if end.Reason != reason.Completed || len(w.requests) != 1 {
		t.Fatalf("it ended %s after %d requests: %s", end.Reason, len(w.requests), end.Message)
	}
	ran := slices.DeleteFunc(slices.Clone(w.log), func(s string) bool { return s == "sync" })
	if len(ran) != 3 || ran[2] != "model" || !slices.Contains(ran, "run user-expand1") || !slices.Contains(ran, "run user-expand2") {
		t.Errorf("in this order: %q", ran)
	}
	m := w.appended[0]
	if calls := m.Calls(); len(w.appended) != 1 || len(calls) != 2 || calls[1].Result.Text != "ran bash" || calls[1].Expands != "@bash" {
		t.Errorf("the model was told %d messages, with %+v", len(w.appended), m.Calls())
	}
	if last := m.Parts[len(m.Parts)-1]; last.Agent == nil || last.Agent.Name != "helper" || !last.Synthetic {
		t.Errorf("the agent is not named: %+v", last)
	}
}

// The guard counts what the model repeats, and not what its user has asked for.
func TestAnExpansionIsNoRepetitionOfTheModel(t *testing.T) {
	w := newWorld(t, calls(`read {"path":"a"}`), say("done"))
	end := w.start(context.Background(), prompted(w, `read {"path":"a"}`), func(c *Config) { c.Guard.Identical = 2 })
	if end.Reason != reason.Completed {
		t.Errorf("it ended %s: %s", end.Reason, end.Message)
	}
}

func TestARefusedExpansionEndsTheRunBeforeAnythingIsExecuted(t *testing.T) {
	deny := func(c message.ToolCall) (message.Decision, error) {
		if c.Tool == "bash" {
			return message.Decision{Action: message.Deny, Rule: "p/shell"}, nil
		}
		return message.Decision{Action: message.Allow, Rule: "p/all"}, nil
	}
	ask := func(c message.ToolCall) (message.Decision, error) {
		return message.Decision{Action: message.Ask, Rule: "p/ask", Hash: "h"}, nil
	}
	for name, c := range map[string]struct {
		decide func(message.ToolCall) (message.Decision, error)
		answer message.Answer
		fails  bool
		want   reason.Reason
		says   string
	}{
		"denied":     {decide: deny, want: reason.Denied, says: "the prompt asks for @bash, and the call of bash was refused: denied by rule p/shell"},
		"unanswered": {decide: ask, answer: message.Answer{State: message.Unanswered, By: "onAsk: Deny"}, want: reason.ApprovalRequired, says: "nobody answered"},
		"rejected":   {decide: ask, answer: message.Answer{State: message.Rejected, Reason: "no"}, want: reason.Denied, says: "rejected by a person: no"},
		"ended":      {decide: ask, answer: message.Answer{State: message.Rejected, EndRun: true}, want: reason.Denied, says: "ended the run"},
		"suspended":  {decide: ask, answer: message.Answer{Suspend: true}, want: reason.ApprovalRequired, says: "waits for an approval"},
		"fails":      {fails: true, want: reason.ToolError, says: "the prompt asks for @read, and the call of read failed: there is no such file"},
	} {
		w := newWorld(t, say("done"))
		if c.decide != nil {
			w.decide = c.decide
		}
		w.ask = func(context.Context, message.Question) (message.Answer, error) { return c.answer, nil }
		if c.fails {
			w.run = func(context.Context, message.ToolCall) (*message.ToolResult, error) {
				return &message.ToolResult{Code: message.CodeTool, Text: "there is no such file"}, nil
			}
		}
		end := w.start(context.Background(), prompted(w, "read {}", "bash {}"))
		if end.Reason != c.want || !strings.Contains(end.Message, c.says) || len(w.requests) > 0 {
			t.Errorf("%s: it ended %s after %d requests: %s", name, end.Reason, len(w.requests), end.Message)
		}
		if !c.fails && slices.ContainsFunc(w.log, func(s string) bool { return strings.HasPrefix(s, "run ") }) {
			t.Errorf("%s: something was executed: %q", name, w.log)
		}
		if end.Hint == "" {
			t.Errorf("%s: nothing says what to do", name)
		}
	}
}

// A program that exits with another code has run: the model reads what it said.
func TestAnExpansionMayExitWithAnotherCode(t *testing.T) {
	w := newWorld(t, say("done"))
	one := 1
	w.run = func(context.Context, message.ToolCall) (*message.ToolResult, error) {
		return &message.ToolResult{Code: message.CodeTool, ExitCode: &one, Text: "2 tests failed"}, nil
	}
	if end := w.start(context.Background(), prompted(w, "bash {}")); end.Reason != reason.Completed {
		t.Errorf("it ended %s: %s", end.Reason, end.Message)
	}
}

// A run that is killed at any event goes on where it was: what may not be repeated is not
// executed twice unasked, and the model is asked once.
func TestExpansionsSurviveAKill(t *testing.T) {
	w := newWorld(t, say("done"))
	list := []string{"again {}", "never {}"}
	if end := w.start(context.Background(), prompted(w, list...)); end.Reason != reason.Completed {
		t.Fatal(end.Message)
	}
	for n := 1; n < len(w.events); n++ {
		next, goOn := w.again(n, say("done"))
		end := next.start(context.Background(), goOn)
		if end.Reason != reason.Completed {
			t.Errorf("killed behind event %d (%s) it ended %s: %s", n, w.events[n-1].Type(), end.Reason, end.Message)
			continue
		}
		for _, s := range next.log {
			if s == "run user-expand2" && slices.ContainsFunc(w.events[:n], func(e event.Event) bool {
				c, ok := e.Data.(event.ToolCall)
				return ok && c.Tool == "never"
			}) {
				t.Errorf("killed behind event %d, a call that had begun was executed again", n)
			}
		}
	}
}

func TestAJournalThatFailsDuringAnExpansionEndsTheRun(t *testing.T) {
	w := newWorld(t, say("done"))
	cfg := w.config()
	prompted(w, "read {}")(&cfg)
	w.run = func(context.Context, message.ToolCall) (*message.ToolResult, error) {
		w.failing = errDisk
		return &message.ToolResult{Text: "x"}, nil
	}
	if _, err := Run(context.Background(), cfg); !errors.Is(err, errDisk) {
		t.Errorf("the error is %v", err)
	}
}
