package runs

import (
	"encoding/json"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
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
