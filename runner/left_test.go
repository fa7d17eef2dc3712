package runner

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

// An answer that is handed over again and again, as after each crash, counts
// once, and never stands in the way of one that was there before.
func TestAnAnswerIsLeftOnce(t *testing.T) {
	p := asking(t, "Suspend", "\n- calls: [{tool: write, args: {path: f, content: x}}]\n- say: done\n", nil)
	out, err := Run(t.Context(), p.options(func(*RunOptions) {}))
	if err != nil {
		t.Fatal(err)
	}
	questions := func() []runs.Asked {
		t.Helper()
		all, err := runs.Questions(t.Context(), p.state, out.Run.ID)
		if err != nil || len(all) != 1 {
			t.Fatalf("got %+v, %v", all, err)
		}
		return all
	}
	q := questions()[0]
	if !q.Open || q.State != runs.Suspended || q.Call == "" || q.ExpiresAt != nil {
		t.Fatalf("got %+v", q)
	}
	answer := runs.Left{Request: "apv-1", State: message.Approved, Scope: message.Once, By: "jane", Time: time.Now()}
	for i := range 3 {
		if left, err := runs.Leave(p.state, &q, answer, time.Now); err != nil || left != (i == 0) {
			t.Fatal(left, err)
		}
	}
	inbox := approval.InboxDir(journal.Dir(p.state, out.Run.ID))
	if files, err := os.ReadDir(inbox); err != nil || len(files) != 1 {
		t.Fatalf("the inbox holds %v, %v", files, err)
	}
	other := runs.Left{Request: "apv-2", State: message.Rejected, By: "joe", Time: time.Now()}
	if left, err := runs.Leave(p.state, &q, other, time.Now); left || err != nil {
		t.Fatal(left, err)
	}
	if out = p.goOn(t); out.Run.Answer(q.Call).By != "jane" || out.Run.Call(q.Call).State != message.StateCompleted {
		t.Fatalf("got %+v", out.Run.Answer(q.Call))
	}
	after := questions()[0]
	if after.ID != q.ID || after.Open || after.Answer == nil || after.Answer.Request != "apv-1" {
		t.Errorf("got %+v", after)
	}
	if !out.Run.Used(q.Call, "apv-1") || out.Run.Used(q.Call, "apv-2") {
		t.Error("the answer counts once more, or another did")
	}
}

// died is a run whose process was killed right after an answer was written down:
// its journal has been changed before, and ends with what is given.
func died(t *testing.T, a message.Answer, change func(event.Event) event.Event, last ...event.Payload) (place, *Outcome) {
	t.Helper()
	p := asking(t, "Suspend", "\n- calls: [{tool: write, args: {path: f, content: x}}]\n- say: done\n", nil)
	out, err := Run(t.Context(), p.options(func(*RunOptions) {}))
	if err != nil {
		t.Fatal(err)
	}
	var all []event.Event
	asked := event.Event{}
	for _, e := range told(t, out) {
		if _, ok := e.Data.(event.ApprovalRequested); ok {
			asked = e
		}
		if _, ok := e.Data.(event.RunFinished); !ok {
			all = append(all, change(e))
		}
	}
	for _, d := range append([]event.Payload{event.ApprovalDecided{Answer: a}}, last...) {
		all = append(all, event.Event{Message: asked.Message, Part: asked.Part, Call: asked.Call, Data: d})
	}
	p.write(t, out, all)
	return p, out
}

// What a person said holds, although the process died that heard it: a yes and a
// no alike, and for exactly what they were asked.
func TestAnAnswerOutlivesTheProcessThatHeardIt(t *testing.T) {
	late := time.Now().Add(time.Hour).UnixMilli()
	yes := message.Answer{State: message.Approved, By: "jane", ExpiresAt: late}
	same := func(e event.Event) event.Event { return e }
	// Jane was asked about something else than what the call would do now.
	var now message.Decision
	other := func(e event.Event) event.Event {
		if d, ok := e.Data.(event.PolicyDecision); ok {
			now = d.Decision
			d.Facts = json.RawMessage(`{"paths":[{"raw":"harmless"}]}`)
			e.Data = d
		}
		return e
	}
	for name, c := range map[string]struct {
		answer message.Answer
		change func(event.Event) event.Event
		judged bool // what the call would do now stands in the journal as well
		asks   bool
		state  message.ToolState
	}{
		"yes":                               {yes, same, false, false, message.StateCompleted},
		"yes, but too long ago":             {message.Answer{State: message.Approved, By: "jane", ExpiresAt: 1}, same, false, true, message.StatePending},
		"no":                                {message.Answer{State: message.Rejected, By: "jane", Reason: "not there"}, same, false, false, message.StateError},
		"yes to something else":             {yes, other, false, true, message.StatePending},
		"yes, and then it was judged anew":  {yes, other, true, true, message.StatePending},
		"no to something else":              {message.Answer{State: message.Rejected, By: "jane", Reason: "not there"}, other, true, true, message.StatePending},
		"nobody in time, which is not a no": {message.Answer{State: message.Expired, By: "clock"}, same, false, true, message.StatePending},
	} {
		t.Run(name, func(t *testing.T) {
			p, out := died(t, c.answer, c.change)
			if c.judged {
				all := told(t, out)
				asked := all[len(all)-1]
				p.write(t, out, append(all, event.Event{Message: asked.Message, Part: asked.Part, Call: asked.Call, Data: event.PolicyDecision{Decision: now}}))
			}
			out, err := Resume(t.Context(), ResumeOptions{Ref: "@latest", State: p.state, Approve: "never", Version: "test"})
			if err != nil {
				t.Fatal(err)
			}
			questions := 0
			for _, e := range told(t, out) {
				if _, ok := e.Data.(event.ApprovalRequested); ok {
					questions++
				}
			}
			call := out.Run.Call("call_1_1")
			if asks := questions > 1; asks != c.asks || call.State != c.state {
				t.Errorf("asked again %v, want %v; the call is %s, want %s", asks, c.asks, call.State, c.state)
			}
			if c.answer.State == message.Rejected && !c.asks && !strings.Contains(call.Result.Text, "not there") {
				t.Errorf("the model reads %q", call.Result.Text)
			}
		})
	}
}
