package runs

import (
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/approval"
)

func TestWhatBecameOfARequest(t *testing.T) {
	at := time.Now()
	tell := func(payloads ...event.Payload) *view.Run {
		v := &view.Run{}
		for _, d := range append([]event.Payload{event.RunStarted{}, event.StepStart{Step: 1}, event.ModelRequest{}, event.ToolInputStart{Tool: "bash"}, event.ApprovalRequested{Tool: "bash"}}, payloads...) {
			in := "m2"
			if _, first := d.(event.RunStarted); first {
				in = "m1"
			}
			if err := v.Apply(event.Event{Run: "r", Message: in, Part: "p", Call: "c", Time: at, Data: d}); err != nil {
				t.Fatal(err)
			}
		}
		return v
	}
	decided := func(request string) event.Payload {
		return event.ApprovalDecided{Answer: message.Answer{State: message.Approved, By: "joe", Request: request}}
	}
	r := approval.Request{ID: "ans-1", Call: "c"}
	for name, c := range map[string]struct {
		v     *view.Run
		there bool
		taken bool
		want  string
	}{
		"open":             {tell(), true, false, ""},
		"taken":            {tell(decided("ans-1")), false, true, ""},
		"taken, not gone":  {tell(decided("ans-1")), true, true, ""},
		"somebody else":    {tell(decided("")), true, false, "approved by joe"},
		"refused":          {tell(event.Warning{Message: "an answer in the run's inbox is not taken (x-ans-1.json): it is old"}), false, false, "it is old"},
		"gone, not told":   {tell(), false, false, ""},
		"ended meanwhile":  {tell(event.ToolError{ToolResult: message.ToolResult{Code: message.CodeCancelled}}), true, false, "has ended already"},
		"another's refuse": {tell(event.Warning{Message: "an answer in the run's inbox is not taken (x-ans-2.json): it is old"}), true, false, ""},
	} {
		taken, err := became(c.v, r, c.there)
		if taken != c.taken || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v", name, taken, err)
		}
	}
}

func TestAnAnswerWaitsForAResume(t *testing.T) {
	state, id := suspended(t)
	waits := func() WaitingCall {
		t.Helper()
		all, err := Waiting(t.Context(), state)
		if err != nil || len(all) != 1 || all[0].Ref != id+"/call_1" || all[0].State != Suspended || all[0].ExpiresAt != nil {
			t.Fatalf("got %+v, %v", all, err)
		}
		return all[0]
	}
	resumable := func(want bool) {
		t.Helper()
		if got, err := Resumable(t.Context(), state, id); got != want || err != nil {
			t.Errorf("resumable is %v, %v", got, err)
		}
	}
	if w := waits(); w.Left != "" || w.Tool != "bash" {
		t.Errorf("got %+v", w)
	}
	resumable(false)
	a, err := Answer(t.Context(), AnswerOptions{Ref: "@latest", State: state, Approve: true, By: "jane@pts/1"})
	if err != nil || a.Taken || a.Scope != message.Once || a.Call != "call_1" || waits().Left != message.Approved {
		t.Errorf("got %+v, %v", a, err)
	}
	resumable(true)
	// No run has seen the approval yet: it can be taken back.
	if a, err = Answer(t.Context(), AnswerOptions{Ref: id + "/call", State: state, By: "jane@pts/1", Reason: "not now"}); err != nil || a.State != message.Rejected || waits().Left != message.Rejected {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestAProcessThatDoesNotListenIsToldOf(t *testing.T) {
	k := begun(t, t.TempDir(), "worker-1")
	_, err := Answer(t.Context(), AnswerOptions{Ref: k.id, State: k.state, Approve: true, By: "jane", Patience: time.Nanosecond})
	if err == nil || !strings.Contains(err.Error(), "does not take the answer") {
		t.Errorf("got %v", err)
	}
	if all, err := Waiting(t.Context(), k.state); err != nil || len(all) != 1 || all[0].State != Waits || all[0].Left != "" {
		t.Errorf("the answer was not taken back: %+v, %v", all, err)
	}
}
