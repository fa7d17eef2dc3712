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

func TestUnknownPartsSurviveARoundTrip(t *testing.T) {
	for name, in := range map[string]string{
		"future type":  `{"id":"p1","type":"hologram","depth":3,"nested":{"a":[1,2]}}`,
		"future field": `{"id":"p1","type":"text","text":"hi","start":1,"end":2,"mood":"good"}`,
		"known":        `{"id":"p1","type":"tool","tool":{"callID":"c","tool":"read","raw":"{}","state":"pending"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var p Part
			if err := json.Unmarshal([]byte(in), &p); err != nil {
				t.Fatal(err)
			}
			out, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			var want, got any
			if err := json.Unmarshal([]byte(in), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("round trip (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPartRefusesWhatIsNoObject(t *testing.T) {
	for _, in := range []string{`"text"`, `{"id":1}`, `[]`} {
		var p Part
		if err := json.Unmarshal([]byte(in), &p); err == nil {
			t.Errorf("%s was read as %+v", in, p)
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
