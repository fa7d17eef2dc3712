package runner

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/journal"
)

// asksOnce is a run whose one call is asked about.
func asksOnce(b *book) func(call string, p event.Payload) {
	at := time.Unix(1000, 0)
	tell := func(call string, p event.Payload) {
		at = at.Add(time.Second)
		in := "answer"
		switch p.(type) {
		case event.RunStarted, event.RunResumed, event.RunFinished:
			in = "user"
		}
		b.add(event.Event{Time: at, Run: "r", Message: in, Part: "p" + call, Call: call, Data: p})
	}
	tell("", event.RunStarted{Agent: "a", Plan: "sha256:plan"})
	tell("", event.StepStart{Step: 1})
	tell("", event.ModelRequest{})
	tell("c", event.ToolInputStart{Tool: "bash"})
	tell("", event.ModelResponse{})
	return tell
}

func TestQuestionsAreToldApart(t *testing.T) {
	judged := func(rule string) event.Payload {
		return event.PolicyDecision{Decision: message.Decision{Action: message.Ask, Rule: rule, Risk: "R2", Hash: "h"}}
	}
	asked := event.ApprovalRequested{Tool: "bash", Args: json.RawMessage(`{"command":"date"}`), Rule: "p/ask", Risk: "R2", Hash: "h"}
	answered := func(s message.ApprovalState, by string) event.Payload {
		return event.ApprovalDecided{Answer: message.Answer{State: s, By: by}}
	}
	resumed := event.RunResumed{Attempt: 2}
	type want struct {
		open bool
		by   string
	}
	for name, c := range map[string]struct {
		reason string
		then   []event.Payload
		want   []want
	}{
		"open":       {"it waits", []event.Payload{judged("p/ask"), asked}, []want{{true, ""}}},
		"answered":   {"the answer is its own", []event.Payload{judged("p/ask"), asked, answered(message.Approved, "jane")}, []want{{false, "jane"}}},
		"resumed":    {"the same question, asked by another process", []event.Payload{judged("p/ask"), asked, resumed, judged("p/ask"), asked, answered(message.Approved, "jane")}, []want{{false, "jane"}}},
		"left":       {"a process was killed, and the next has not asked yet", []event.Payload{judged("p/ask"), asked, resumed}, []want{{true, ""}}},
		"asked anew": {"an answer counts once", []event.Payload{judged("p/ask"), asked, answered(message.Approved, "jane"), asked}, []want{{false, "jane"}, {true, ""}}},
		"changed":    {"what it would do is something else", []event.Payload{judged("p/ask"), asked, judged("p/other"), asked}, []want{{false, ""}, {true, ""}}},
		"ended":      {"nobody will take an answer", []event.Payload{judged("p/ask"), asked, event.RunFinished{Phase: view.Cancelled}}, []want{{false, ""}}},
		"suspended":  {"it waits for an answer", []event.Payload{judged("p/ask"), asked, event.RunFinished{Phase: view.Suspended}}, []want{{true, ""}}},
		"not needed": {"the policy has changed its mind", []event.Payload{judged("p/ask"), asked, resumed, event.ToolError{}}, []want{{false, ""}}},
		"unjudged":   {"an answer could be bound to nothing", []event.Payload{asked}, nil},
	} {
		var b book
		tell := asksOnce(&b)
		for _, p := range c.then {
			tell("c", p)
		}
		if len(b.asked) != len(c.want) {
			t.Errorf("%s: %s: got %d questions, want %d: %+v", name, c.reason, len(b.asked), len(c.want), b.asked)
			continue
		}
		ids := map[string]bool{}
		for i, q := range b.asked {
			by := ""
			if q.Answer != nil {
				by = q.Answer.By
			}
			if (want{q.Open, by}) != c.want[i] || (q.Why != "") != (!q.Open && by == "") {
				t.Errorf("%s: %s: question %d is open %v, answered by %q, %q; want %+v", name, c.reason, i, q.Open, by, q.Why, c.want[i])
			}
			ids[q.ID] = true
			if q.Binding == "" || q.Tool != "bash" || string(q.Args) != `{"command":"date"}` {
				t.Errorf("%s: question %d is %+v", name, i, q)
			}
		}
		if len(ids) != len(b.asked) {
			t.Errorf("%s: two questions have one id", name)
		}
	}
}

func TestARunWithoutAJournalHasAskedNothing(t *testing.T) {
	if got, err := Questions(t.Context(), t.TempDir(), "none"); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// An answer that is handed over again and again, as after each crash, counts
// once, and never stands in the way of one that was there before.
func TestAnAnswerIsLeftOnce(t *testing.T) {
	p := asking(t, "Suspend", "\n- calls: [{tool: write, args: {path: f, content: x}}]\n- say: done\n", nil)
	out, err := Run(t.Context(), p.options(func(*RunOptions) {}))
	if err != nil {
		t.Fatal(err)
	}
	questions := func() []Asked {
		t.Helper()
		all, err := Questions(t.Context(), p.state, out.Run.ID)
		if err != nil || len(all) != 1 {
			t.Fatalf("got %+v, %v", all, err)
		}
		return all
	}
	q := questions()[0]
	if !q.Open || q.State != RunSuspended || q.Call == "" || q.ExpiresAt != nil {
		t.Fatalf("got %+v", q)
	}
	answer := Left{Request: "apv-1", State: message.Approved, Scope: message.Once, By: "jane", Time: time.Now()}
	for i := range 3 {
		if left, err := Leave(p.state, &q, answer, time.Now); err != nil || left != (i == 0) {
			t.Fatal(left, err)
		}
	}
	inbox := approval.InboxDir(journal.Dir(p.state, out.Run.ID))
	if files, err := os.ReadDir(inbox); err != nil || len(files) != 1 {
		t.Fatalf("the inbox holds %v, %v", files, err)
	}
	other := Left{Request: "apv-2", State: message.Rejected, By: "joe", Time: time.Now()}
	if left, err := Leave(p.state, &q, other, time.Now); left || err != nil {
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
