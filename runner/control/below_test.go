package control

import (
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// What waits below a run is counted call by call, whichever of its runs asks.
func TestWhatRunsBelowWaitFor(t *testing.T) {
	b := &below{}
	if b.rests() {
		t.Error("a run without runs below waits for them")
	}
	for i, step := range []struct {
		reason  string
		run     string
		call    string
		data    event.Payload
		changed bool
		pending int32
		rests   bool
	}{
		{"it works", "a", "", event.RunStarted{}, false, 0, false},
		{"it waits", "a", "c1", event.ApprovalRequested{}, true, 1, true},
		{"another one works", "b", "", event.RunStarted{}, false, 1, false},
		{"its call has the same name", "b", "c1", event.QuestionAsked{}, true, 2, true},
		{"the first is answered", "a", "c1", event.ApprovalDecided{}, true, 1, false},
		{"it asks again", "a", "c1", event.ApprovalRequested{}, true, 2, true},
		{"a decision on a call that does not wait", "a", "c2", event.PolicyDecision{Decision: message.Decision{Action: message.Deny}}, false, 2, true},
		{"it is refused by a policy meanwhile", "a", "c1", event.PolicyDecision{Decision: message.Decision{Action: message.Deny}}, true, 1, false},
		{"it ends", "a", "", event.RunFinished{}, true, 1, true},
		{"the other ends while it asks", "b", "", event.RunFinished{}, true, 0, false},
	} {
		changed := b.note(event.Event{Run: step.run, Call: step.call, Data: step.data})
		if changed != step.changed || b.pending() != step.pending || b.rests() != step.rests {
			t.Errorf("%d, %s: changed %v, %d pending, rests %v", i, step.reason, changed, b.pending(), b.rests())
		}
	}
}
