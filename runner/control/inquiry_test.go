package control

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
)

// newInquiry is a bench with a run whose running call asks a question.
func newInquiry(t *testing.T) *asksBench {
	t.Helper()
	b := newAsks(t)
	b.asker.asked[0].Question = &message.Inquiry{ID: "q1", Text: "Which colour?", Options: []string{"red", "blue"}}
	b.asker.asked[0].Always = nil
	b.look()
	return b
}

func TestAQuestionIsAnObjectAndItsAnswerReachesTheRun(t *testing.T) {
	b := newInquiry(t)
	a := b.only()
	if s := a.Spec; s.Question != "Which colour?" || len(s.Options) != 2 || s.Options[1] != "blue" || s.Summary != "bash asks: Which colour?" || s.Once != "" {
		t.Errorf("got %+v", s)
	}
	at := metav1.NewTime(b.clock)
	a.Status = v1alpha1.ApprovalStatus{Decision: v1alpha1.DecisionApproved, Answer: "blue", By: "jane", DecidedAt: &at}
	if err := b.Status().Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	b.look()
	if left := b.asker.left; len(left) != 1 || left[0].Answer == nil || *left[0].Answer != "blue" || left[0].State != message.Approved {
		t.Fatalf("left for the run: %+v", left)
	}
}

func TestAQuestionThatWasAnsweredElsewhereShowsTheAnswer(t *testing.T) {
	b := newInquiry(t)
	b.only()
	q := &b.asker.asked[0]
	reply := message.Reply{ID: "q1", State: message.ReplyAnswered, Answer: "red", By: "joe", Via: "inbox"}
	q.Open, q.Used, q.Reply = false, true, &view.Reply{Reply: reply, Time: b.clock}
	q.Answer = &view.Answer{Answer: message.Answer{State: message.Approved, By: "joe"}, Time: b.clock.Add(time.Second)}
	b.look()
	if s := b.only().Status; s.Decision != v1alpha1.DecisionApproved || s.Answer != "red" || s.By != "joe" || s.TakenAt == nil {
		t.Errorf("got %+v", s)
	}
}
