package cassette

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/modeltest"
)

var gpt = message.ModelRef{Name: "fast", Provider: "openai", Model: "gpt"}

// told are the events of one answer.
func told(id string, a modeltest.Answer) []event.Event {
	events := []event.Event{{Message: id, Data: event.ModelRequest{}}}
	finish := message.FinishStop
	for _, c := range a.Calls {
		finish = message.FinishToolCalls
		events = append(events,
			event.Event{Message: id, Call: c.ID, Data: event.ToolInputStart{Tool: c.Tool}},
			event.Event{Message: id, Call: c.ID, Data: event.ToolInputDelta{Text: c.Args}})
	}
	if a.Reasoning != "" {
		events = append(events, event.Event{Message: id, Data: event.ReasoningEnd{Text: a.Reasoning}})
	}
	return append(events,
		event.Event{Message: id, Data: event.TextEnd{Text: a.Text}},
		event.Event{Message: id, Data: event.ModelResponse{Model: gpt, Finish: finish, Tokens: message.Usage{Input: 3, Output: 4}}})
}

func summary(id, text string) []event.Event {
	return []event.Event{
		{Message: id, Data: event.ModelRequest{Summary: true}},
		{Message: id, Data: event.ContextCompaction{Summary: text, Model: gpt}},
	}
}

// record writes a cassette of some events between a begin and an end.
func record(t testing.TB, events ...[]event.Event) string {
	t.Helper()
	c := &cassette.Cassette{Plan: json.RawMessage(`{}`), Header: cassette.Header{Run: "r"}}
	all := []event.Event{{Message: "m1", Data: event.RunStarted{}}}
	for _, e := range events {
		all = append(all, e...)
	}
	all = append(all, event.Event{Data: event.RunFinished{Phase: "Succeeded"}})
	for i, e := range all {
		e.Seq, e.Run, e.Time = int64(i+1), "r", time.UnixMilli(int64(i))
		c.Events = append(c.Events, e)
	}
	path := filepath.Join(t.TempDir(), "r.jsonl")
	if err := c.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string) *Conversation {
	t.Helper()
	c, err := New(path, Options{Name: "tape"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConversationDoesWhatEveryOneDoes(t *testing.T) {
	modeltest.Basics(t, func(t testing.TB, answers ...modeltest.Answer) model.Conversation {
		t.Helper()
		var all []event.Event
		for i, a := range answers {
			all = append(all, told(string(rune('a'+i)), a)...)
		}
		return open(t, record(t, all))
	})
}

// next asks and takes the text; emitted are the pieces.
func next(t *testing.T, c *Conversation, req message.Request) (out *message.Output, emitted []message.Delta) {
	t.Helper()
	out, err := c.Next(t.Context(), req, func(d message.Delta) error { emitted = append(emitted, d); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return out, emitted
}

func TestAnswersComeInOrderAsTheyWereRecorded(t *testing.T) {
	call := modeltest.Call{ID: "c1", Tool: "bash", Args: `{"command":"ls"}`}
	c := open(t, record(t,
		told("a", modeltest.Answer{Reasoning: "hm", Text: "one", Calls: []modeltest.Call{call}}),
		summary("s", "notes"),
		told("b", modeltest.Answer{Text: "two"})))
	out, emitted := next(t, c, message.Request{})
	want := &message.Output{
		Reasoning: "hm", Text: "one", Calls: []message.CallRequest{{ID: "c1", Tool: "bash", Args: call.Args}},
		Finish: message.FinishToolCalls, Usage: message.Usage{Input: 3, Output: 4},
		Model: message.ModelRef{Name: "tape", Provider: "openai", Model: "gpt"},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]message.Delta{
		{Kind: message.DeltaReasoning, Text: "hm"},
		{Kind: message.DeltaText, Text: "one"},
		{Kind: message.DeltaTool, Tool: "bash", Call: "c1", Text: call.Args},
	}, emitted); diff != "" {
		t.Errorf("pieces (-want +got):\n%s", diff)
	}
	if out, _ = next(t, c, message.Request{}); out.Text != "two" {
		t.Errorf("an answer is %q: the summary is none", out.Text)
	}
	aside := message.Request{Aside: &message.Aside{}}
	if out, _ = next(t, c, aside); out.Text != "notes" {
		t.Errorf("the summary is %q", out.Text)
	}
	for _, req := range []message.Request{{}, aside} {
		_, err := c.Next(t.Context(), req, nil)
		if reason.Of(err) != reason.ReplayDiverged || !strings.Contains(err.Error(), "holds 3 answers, and all are used") || reason.Hint(err) == "" {
			t.Errorf("after the last answer: %v", err)
		}
	}
}

func TestAResumeGoesOnWhereItStopped(t *testing.T) {
	path := record(t, told("a", modeltest.Answer{Text: "one"}), summary("s", "notes"), told("b", modeltest.Answer{Text: "two"}), told("c", modeltest.Answer{Text: "three"}))
	answer := func(m message.Message) *message.Message {
		m.Role = message.RoleAssistant
		return &m
	}
	tape := &message.ModelRef{Name: "tape"}
	complete := message.Message{Model: tape, Finish: message.FinishStop}
	for name, c := range map[string]struct {
		reason string
		before []*message.Message
		want   string
	}{
		"nothing":       {"a new run begins at the beginning", nil, "one"},
		"a prompt":      {"what others say uses up nothing", []*message.Message{{Role: message.RoleUser}}, "one"},
		"an answer":     {"an answer was given then", []*message.Message{answer(complete)}, "two"},
		"two":           {"and so was the next", []*message.Message{answer(complete), answer(complete)}, "three"},
		"void":          {"a void answer never was complete", []*message.Message{answer(message.Message{Error: message.Void})}, "one"},
		"aborted":       {"one that was cut short neither", []*message.Message{answer(message.Message{Error: message.Aborted})}, "one"},
		"of another":    {"a fallback's answer was not taken from here", []*message.Message{answer(message.Message{Model: &gpt, Finish: message.FinishStop})}, "one"},
		"a summary":     {"a summary uses up a summary", []*message.Message{answer(message.Message{Model: tape, Summary: true})}, "one"},
		"more than all": {"what is not there cannot be used up", []*message.Message{answer(complete), answer(complete), answer(complete), answer(complete)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conversation := open(t, path)
			for _, m := range c.before {
				if err := conversation.Append(m); err != nil {
					t.Fatal(err)
				}
			}
			if c.want == "" {
				if _, err := conversation.Next(t.Context(), message.Request{}, nil); reason.Of(err) != reason.ReplayDiverged {
					t.Errorf("%s: %v", c.reason, err)
				}
				return
			}
			if out, _ := next(t, conversation, message.Request{}); out.Text != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, out.Text, c.want)
			}
		})
	}
}

func TestWhatCannotBePlayed(t *testing.T) {
	if _, err := New(filepath.Join(t.TempDir(), "x"), Options{Name: "tape"}); reason.Of(err) != reason.ReplayDiverged || !strings.Contains(err.Error(), `model "tape": spec.cassette.path: `) {
		t.Errorf("a file that is not there: %v", err)
	}
	path := record(t, told("a", modeltest.Answer{Text: "one"}))
	file, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(file), "one", "two", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(path, Options{Name: "tape"})
	if _, damaged := errors.AsType[*cassette.DamageError](err); !damaged || reason.Of(err) != reason.ReplayDiverged {
		t.Errorf("a damaged file: %v", err)
	}
	c := open(t, record(t, told("a", modeltest.Answer{Text: "one"})))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Next(ctx, message.Request{}, nil); reason.Of(err) != reason.Cancelled {
		t.Errorf("a cancelled request: %v", err)
	}
	if out, _ := next(t, c, message.Request{}); out.Text != "one" {
		t.Error("a cancelled request has used up an answer")
	}
}
