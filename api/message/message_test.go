package message

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The whole square: what is not in the table is refused.
func TestToolStateMoves(t *testing.T) {
	states := []ToolState{StatePending, StateRunning, StateCompleted, StateError}
	legal := map[[2]ToolState]bool{
		{StatePending, StateRunning}: true, {StatePending, StateError}: true,
		{StateRunning, StateCompleted}: true, {StateRunning, StateError}: true,
	}
	for _, from := range states {
		for _, to := range states {
			p := ToolPart{CallID: "c", State: from}
			err := p.Move(to)
			if want := legal[[2]ToolState{from, to}]; (err == nil) != want {
				t.Errorf("%s to %s: error %v, want legal = %v", from, to, err, want)
			}
			if err != nil && p.State != from {
				t.Errorf("a refused move from %s changed the state to %s", from, p.State)
			}
		}
	}
}

func TestMessageTextLeavesOutWhatIsIgnored(t *testing.T) {
	m := Message{Parts: []Part{
		{Type: PartReasoning, Text: "hm"},
		{Type: PartText, Text: "a"},
		{Type: PartText, Text: "b", Ignored: true},
		{Type: PartTool, Tool: &ToolPart{CallID: "1"}},
		{Type: PartText, Text: "c", Synthetic: true},
		{Type: PartTool, Tool: &ToolPart{CallID: "2"}},
	}}
	if got := m.Text(); got != "ac" {
		t.Errorf("text %q, want %q", got, "ac")
	}
	if got := m.Calls(); len(got) != 2 || got[1].CallID != "2" {
		t.Errorf("calls %v", got)
	}
}

func TestUsage(t *testing.T) {
	u := Usage{Input: 1, Output: 2, Reasoning: 1, CacheRead: 4, CacheWrite: 8}
	if got := u.Add(u).Total(); got != 30 {
		t.Errorf("total %d, want 30: reasoning is a part of output", got)
	}
}

func TestCallErrorNamesItsCode(t *testing.T) {
	err := error(&CallError{Code: CodeSchema, Text: "x"})
	if err.Error() != "schema: x" {
		t.Errorf("got %q", err)
	}
	if (&ToolResult{Code: CodeTool}).Failed() == (&ToolResult{}).Failed() {
		t.Error("a result with a code has failed, one without has not")
	}
}

func TestMessageSurvivesARoundTrip(t *testing.T) {
	cost := Cost(104_000_000)
	m := Message{
		ID: "m", Role: RoleAssistant, ParentID: "u", Agent: "a", Model: &ModelRef{"n", "p", "m", "v"}, Path: &Path{"/w/a", "/w"}, Mode: "Primary",
		System: "b", Tools: []string{"read"}, Summary: true, Parts: everyPart(), Finish: FinishToolCalls, Usage: Usage{1, 2, 3, 4, 5},
		Cost: &cost, Error: Aborted, Time: Time{1, 2},
	}
	m.Parts = append(m.Parts, Part{ID: "p", Type: "hologram", Fields: json.RawMessage(`{"file":7,"n":1e400}`)})
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back Message
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := json.Unmarshal([]byte(`{"id":"m","parts":[{"id":"p","type":"text","text":1}]}`), &back); err == nil {
		t.Error("a message with a part that is none was read")
	}
}

func TestOpenIsAnAnswerThatIsBeingWritten(t *testing.T) {
	var none *Message
	for name, c := range map[string]struct {
		m    *Message
		want bool
	}{
		"none":     {none, false},
		"user":     {&Message{Role: RoleUser}, false},
		"written":  {&Message{Role: RoleAssistant}, true},
		"complete": {&Message{Role: RoleAssistant, Time: Time{Completed: 1}}, false},
	} {
		if got := c.m.Open(); got != c.want {
			t.Errorf("%s: open is %v", name, got)
		}
	}
}
