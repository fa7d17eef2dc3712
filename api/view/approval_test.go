package view

import (
	"slices"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

func TestQuestionsAndAnswersAreKept(t *testing.T) {
	at := time.UnixMilli(1000)
	r, in := &Run{}, "user"
	tell := func(p event.Payload) {
		t.Helper()
		at = at.Add(time.Second)
		if err := r.Apply(event.Event{Time: at, Run: "r", Message: in, Part: "p", Call: "c", Data: p}); err != nil {
			t.Fatal(err)
		}
	}
	grant := message.Grant{Permission: "bash", Pattern: "make *"}
	always := message.Answer{State: message.Approved, By: "jane", Scope: message.Always, Remember: []message.Grant{grant}, Request: "q1"}
	tell(event.RunStarted{Agent: "a"})
	in = "answer"
	tell(event.StepStart{Step: 1})
	tell(event.ModelRequest{})
	tell(event.ToolInputStart{Tool: "bash"})
	if r.Question("c") != nil || r.Answer("c") != nil || r.Question("other") != nil || r.Answer("other") != nil {
		t.Error("nobody was asked yet")
	}
	tell(event.ApprovalRequested{Tool: "bash", Hash: "h", ExpiresAt: 9})
	if q := r.Question("c"); q == nil || q.Hash != "h" || q.ExpiresAt != 9 || !q.Time.Equal(at) || len(r.PendingApprovals) != 1 {
		t.Errorf("got %+v, pending %v", q, r.PendingApprovals)
	}
	rejected := always
	rejected.State = message.Rejected
	tell(event.ApprovalDecided{Answer: rejected})
	if len(r.Remembered) != 0 {
		t.Errorf("only an approval is remembered, got %v", r.Remembered)
	}
	tell(event.ApprovalDecided{Answer: always})
	if a := r.Answer("c"); a == nil || a.Request != "q1" || !a.Time.Equal(at) || len(r.PendingApprovals) != 0 {
		t.Errorf("got %+v, pending %v", a, r.PendingApprovals)
	}
	if len(r.Remembered) != 1 || r.Remembered[0] != grant {
		t.Errorf("got %v", r.Remembered)
	}
	once := always
	once.Scope = message.Once
	tell(event.ApprovalDecided{Answer: once})
	if len(r.Remembered) != 1 {
		t.Errorf("an approval for once is not remembered, got %v", r.Remembered)
	}
	if r.Granted != 2 || r.Refused != 1 {
		t.Errorf("%d granted, %d refused, want 2 and 1", r.Granted, r.Refused)
	}
}

// asksBench is a run whose call c runs.
func asksBench(t *testing.T) (r *Run, apply func(event.Payload) error) {
	t.Helper()
	r, seq := &Run{}, int64(0)
	apply = func(p event.Payload) error {
		in := "answer"
		if _, begins := p.(event.RunStarted); begins {
			in = "user"
		}
		seq++
		return r.Apply(event.Event{Seq: seq, Time: time.UnixMilli(1000 + seq), Run: "r", Message: in, Part: "p", Call: "c", Data: p})
	}
	for _, p := range []event.Payload{
		event.RunStarted{Agent: "a"},
		event.StepStart{Step: 1},
		event.ModelRequest{},
		event.ToolInputStart{Tool: "paint"},
		event.ToolInputEnd{Tool: "paint", Raw: "{}", Input: []byte("{}")},
		event.ModelResponse{},
		event.ToolCall{Tool: "paint", Args: []byte("{}")},
	} {
		if err := apply(p); err != nil {
			t.Fatal(err)
		}
	}
	return r, apply
}

func asksAbout(id string) event.QuestionAsked {
	return event.QuestionAsked{Inquiry: message.Inquiry{ID: id, Text: "Which colour?", ExpiresAt: 9}}
}

func answers(id, text, request string) event.QuestionAnswered {
	return event.QuestionAnswered{Reply: message.Reply{ID: id, State: message.ReplyAnswered, Answer: text, By: "jane", Request: request}}
}

func TestAQuestionOfARunningCallIsOpenUntilItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		end    event.Payload
		reply  string // the newest answer, "" when there is none
	}{
		"answered":            {"an answer closes it", answers("q1", "teal", "a1"), "teal"},
		"the call has ended":  {"the tool does not wait any more", event.ToolResult{}, ""},
		"the call has failed": {"the tool does not wait any more", event.ToolError{}, ""},
		"another process":     {"the process that asked was killed", event.RunResumed{Attempt: 2}, ""},
		"the run has ended":   {"its process ends with it", event.RunFinished{Phase: Cancelled}, ""},
		"suspended":           {"a suspended run has no process either", event.RunFinished{Phase: Suspended}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, apply := asksBench(t)
			if err := apply(asksAbout("q1")); err != nil {
				t.Fatal(err)
			}
			if q := r.Inquiry("c"); q == nil || q.Text != "Which colour?" || q.Time.IsZero() || r.Inquiries("c") != 1 || !slices.Equal(r.PendingApprovals, []string{"c"}) {
				t.Fatalf("got %+v, pending %v", q, r.PendingApprovals)
			}
			if err := apply(c.end); err != nil {
				t.Fatal(err)
			}
			if r.Inquiry("c") != nil || len(r.PendingApprovals) > 0 {
				t.Errorf("%s, but %+v is open, pending %v", c.reason, r.Inquiry("c"), r.PendingApprovals)
			}
			reply := r.Reply("c")
			if (reply != nil) != (c.reply != "") || reply != nil && (reply.Answer != c.reply || !r.Used("c", reply.Request)) {
				t.Errorf("%s: got %+v", c.reason, reply)
			}
			if r.Question("c") != nil || r.Answer("c") != nil || r.Granted+r.Refused > 0 {
				t.Error("it counts as an approval")
			}
		})
	}
}

func TestAQuestionThatCannotFollowIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		first  []event.Payload
		wrong  event.Payload
	}{
		"no id":                {"its answer could not be told from another one", nil, asksAbout("")},
		"two at once":          {"a call asks one question at a time", []event.Payload{asksAbout("q1")}, asksAbout("q2")},
		"after the call":       {"the call has ended", []event.Payload{event.ToolResult{}}, asksAbout("q1")},
		"nothing was asked":    {"an answer needs a question", nil, answers("q1", "x", "")},
		"another answer":       {"an answer is to one question", []event.Payload{asksAbout("q1")}, answers("q2", "x", "")},
		"a second answer":      {"a question has one end", []event.Payload{asksAbout("q1"), answers("q1", "x", "")}, answers("q1", "y", "")},
		"of a killed process":  {"an answer of the process before comes too late", []event.Payload{asksAbout("q1"), event.RunResumed{Attempt: 2}}, answers("q1", "x", "")},
		"an approval":          {"the call runs", []event.Payload{asksAbout("q1")}, event.ApprovalRequested{}},
		"a call that waits":    {"whether it may run again is not decided", []event.Payload{event.RunResumed{Attempt: 2}, event.ApprovalRequested{Unknown: true}}, asksAbout("q1")},
		"after the call ended": {"the tool has its result", []event.Payload{asksAbout("q1"), event.ToolResult{}}, answers("q1", "x", "")},
	} {
		t.Run(name, func(t *testing.T) {
			r, apply := asksBench(t)
			for _, p := range c.first {
				if err := apply(p); err != nil {
					t.Fatal(err)
				}
			}
			if err := apply(c.wrong); err == nil {
				t.Errorf("%s, and it was taken: %+v, %+v", c.reason, r.Inquiry("c"), r.Reply("c"))
			}
		})
	}
}

// A call that a crash has interrupted and that runs again asks again.
func TestACallThatRunsAgainAsksAgain(t *testing.T) {
	r, apply := asksBench(t)
	for _, p := range []event.Payload{
		asksAbout("q1"), event.RunResumed{Attempt: 2}, event.ToolCall{Tool: "paint", Args: []byte("{}"), Attempt: 2}, asksAbout("q2"), answers("q2", "red", ""),
	} {
		if err := apply(p); err != nil {
			t.Fatal(err)
		}
	}
	if r.Inquiries("c") != 2 || r.Reply("c").Answer != "red" || r.Inquiry("c") != nil {
		t.Errorf("asked %d times, %+v", r.Inquiries("c"), r.Reply("c"))
	}
}
