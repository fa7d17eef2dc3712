package moment

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/journal"
)

// write writes the journal of a run of two steps: one answer with two calls, of which the
// first has written, and a last answer.
func write(t *testing.T, more ...event.Event) journal.Found {
	t.Helper()
	found := journal.Found{ID: "r", Dir: t.TempDir()}
	w, err := journal.Create(t.Context(), journal.Options{Dir: found.Dir, Run: found.ID})
	if err != nil {
		t.Fatal(err)
	}
	args := json.RawMessage(`{}`)
	result := func(writes bool) event.ToolResult {
		return event.ToolResult{ToolResult: message.ToolResult{Text: "ok", Writes: writes}}
	}
	all := []event.Event{
		{Message: "m1", Part: "p1", Data: event.RunStarted{Agent: "a", Prompt: "go"}},
		{Data: event.WorkspaceSnapshot{Snapshot: "base", Steps: true}},
		{Data: event.StepStart{Step: 1}},
		{Message: "m2", Part: "p2", Data: event.ModelRequest{Step: 1}},
		{Message: "m2", Part: "p3", Call: "c1", Data: event.ToolInputStart{Tool: "bash"}},
		{Message: "m2", Part: "p4", Call: "c2", Data: event.ToolInputStart{Tool: "bash"}},
		{Message: "m2", Data: event.ModelResponse{}},
		{Message: "m2", Call: "c1", Data: event.ToolInputEnd{Tool: "bash", Input: args}},
		{Message: "m2", Call: "c1", Data: event.PolicyDecision{Decision: message.Decision{Action: message.Allow}}},
		{Message: "m2", Call: "c2", Data: event.ToolInputEnd{Tool: "bash", Input: args}},
		{Message: "m2", Call: "c2", Data: event.PolicyDecision{Decision: message.Decision{Action: message.Allow}}},
		{Message: "m2", Call: "c1", Data: event.ToolCall{Tool: "bash", Args: args}},
		{Message: "m2", Call: "c1", Data: result(true)},
		{Message: "m2", Call: "c2", Data: event.ToolCall{Tool: "bash", Args: args}},
		{Message: "m2", Call: "c2", Data: result(false)},
		{Data: event.WorkspaceSnapshot{Snapshot: "one", Step: 1}},
		{Message: "m2", Part: "p5", Data: event.StepFinish{Step: 1}},
		{Data: event.StepStart{Step: 2}},
		{Message: "m3", Part: "p6", Data: event.ModelRequest{Step: 2}},
		{Message: "m3", Data: event.ModelResponse{}},
		{Message: "m3", Part: "p7", Data: event.StepFinish{Step: 2}},
	}
	for _, e := range append(all, more...) {
		if _, err := w.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAPlaceIsBeforeWhatItNames(t *testing.T) {
	found := write(t)
	for at, want := range map[string]struct {
		seq           int64
		message, call string
		files         Files
	}{
		"":       {21, "", "", Files{State: "one"}},
		"m1":     {0, "m1", "", Files{State: "base"}},
		"turn/1": {0, "m1", "", Files{State: "base"}},
		"m2":     {2, "m2", "", Files{State: "base"}},
		"step/1": {2, "m2", "", Files{State: "base"}},
		"c1":     {11, "m2", "c1", Files{State: "base"}},
		"c2":     {13, "m2", "c2", Files{State: "base", Unknown: "call c1 may have changed them, and they are recorded after each step only"}},
		"step/2": {17, "m3", "", Files{State: "one"}},
	} {
		m, err := Find(t.Context(), found, at)
		if err != nil {
			t.Errorf("%q: %v", at, err)
			continue
		}
		if m.Seq != want.seq || m.Message != want.message || m.Call != want.call {
			t.Errorf("%q is event %d, message %q, call %q; want %+v", at, m.Seq, m.Message, m.Call, want)
		}
		if diff := cmp.Diff(want.files, m.Files); diff != "" {
			t.Errorf("%q: files (-want +got):\n%s", at, diff)
		}
		if (m.Seq == 0) != (m.Hash == "") && at != "" {
			t.Errorf("%q: hash %q of event %d", at, m.Hash, m.Seq)
		}
	}
}

// What is begun and has no result is judged again: nothing of it may be taken over.
func TestCallsWithoutAResultAreNotTakenOver(t *testing.T) {
	m, err := Find(t.Context(), write(t), "c2")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range m.Events {
		if e.Call == "c2" && e.Type() != event.TypeToolInputStart {
			t.Errorf("%s of the call is taken over", e.Type())
		}
	}
	if c := m.Before.Call("c1"); c == nil || c.State != message.StateCompleted {
		t.Errorf("the call before is %+v", c)
	}
	if c := m.Before.Call("c2"); c == nil || c.State != message.StatePending || c.Decision != nil {
		t.Errorf("the call is %+v", c)
	}
}

func TestPlacesThatAreNoneAreRefused(t *testing.T) {
	found := write(t)
	for at, want := range map[string]string{
		"m": "begins several", "x": "no message and no call", "turn/2": "has 1 turns", "turn/0": "has 1 turns", "step/3": "has no step 3", "step/x": "is not a place", "line/1": "is not a place",
	} {
		if _, err := Find(t.Context(), found, at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", at, err, want)
		}
	}
}

// The state after a step that could not be recorded is not taken for the one before it.
func TestAStateThatCouldNotBeRecordedIsUnknown(t *testing.T) {
	found := write(t, event.Event{Data: event.WorkspaceSnapshot{Step: 3, Error: "no space"}})
	m, err := Find(t.Context(), found, "")
	if err != nil || !strings.Contains(m.Files.Unknown, "no space") {
		t.Errorf("files %+v, %v", m.Files, err)
	}
}

func TestEffectsOutsideAreListedOnce(t *testing.T) {
	args := json.RawMessage(`{}`)
	events := []event.Event{
		{Call: "c1", Data: event.ToolCall{Tool: "post", Args: args}},
		{Call: "c1", Data: event.EgressConnection{Host: "api.example", Address: "192.0.2.1:443", Decision: message.Allow}},
		{Call: "c1", Data: event.EgressConnection{Host: "api.example", Address: "192.0.2.1:443", Decision: message.Allow}},
		{Call: "c1", Data: event.EgressConnection{Host: "evil.example", Decision: message.Deny}},
		{Call: "c1", Data: event.ToolResult{ToolResult: message.ToolResult{Writes: true}}},
		{Data: event.WorkspaceApplied{Source: "/src", By: "jane"}},
	}
	var texts []string
	for _, e := range Effects(events, nil, true) {
		texts = append(texts, e.Kind+": "+e.Text)
	}
	want := []string{"Network: a connection to api.example", "Source: its change was applied to /src", "InPlace: calls have worked in place"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
