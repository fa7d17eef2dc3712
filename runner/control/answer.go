package control

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/api/view"
)

// answer is the answer to a question, from the journal of a run.
type answer = view.Answer

// requestID is the id under which a run receives the decision of an object. An object that
// was deleted and created again has another UID, and so another id.
func requestID(a *v1alpha1.Approval) string { return "apv-" + string(a.UID) }

// settled reports whether the state of an object is final.
func settled(a *v1alpha1.Approval) bool {
	s := &a.Status
	switch s.Decision {
	case v1alpha1.DecisionExpired, v1alpha1.DecisionUnanswered:
		return true
	case v1alpha1.DecisionApproved, v1alpha1.DecisionRejected:
		return s.TakenAt != nil || s.Message != ""
	}
	return false
}

// outcome completes the status of an object whose question is closed: by an
// answer, or without one for some reason. What was decided on it stays, also
// where the run was answered otherwise.
func outcome(a *v1alpha1.Approval, got *answer, why string, now time.Time) {
	s := &a.Status
	switch {
	case got != nil && s.Decision != "" && got.Request == requestID(a):
		s.TakenAt, s.Message = &metav1.Time{Time: got.Time}, cut(why, 1024)
	case got != nil && s.Decision != "":
		s.Message = cut(fmt.Sprintf("the run had another answer: %s by %s", got.State, got.By), 1024)
	case s.Decision != "":
		s.Message = why
	case got != nil:
		at := metav1.NewTime(got.Time)
		s.Decision, s.Reason, s.DecidedAt, s.TakenAt = v1alpha1.ApprovalDecision(got.State), cut(got.Reason, 4096), &at, &at
		s.Message = cut(why, 1024)
		if got.State == message.Approved || got.State == message.Rejected { // otherwise there is no decision
			s.By, s.EndRun = cut(got.By, 256), got.EndRun
		}
		if got.State == message.Approved {
			s.Scope = v1alpha1.ScopeOnce
			if got.Scope == message.Always {
				s.Scope = v1alpha1.ScopeAlways
			}
		}
	default:
		s.Decision, s.Reason, s.DecidedAt = v1alpha1.DecisionUnanswered, why, &metav1.Time{Time: now}
	}
}
