package view

import (
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
