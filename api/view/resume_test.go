package view

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// A run may die after any of its events. What was asked and not answered is
// void then; everything else is as it was.
func TestResumeAfterEveryEvent(t *testing.T) {
	for n := 1; n < len(conversation); n++ {
		before, r := fold(t, conversation[:n]...), fold(t, conversation[:n]...)
		resumed := event.Event{Seq: int64(n + 1), Run: "r", Time: begin.Add(time.Hour), Data: event.RunResumed{Attempt: 2}}
		if err := r.Apply(resumed); err != nil {
			t.Fatal(err)
		}
		if err := r.legal(); err != nil {
			t.Errorf("after %d events: %v", n, err)
		}
		answered := n >= 12
		steps, calls := 0, 0
		if answered {
			steps, calls = 1, 2
		}
		if r.Steps != steps || len(r.calls) != calls || r.Attempt != 2 || r.Phase != Running || r.PendingApprovals != nil {
			t.Errorf("after %d events: %d steps, %d calls, attempt %d, %s, pending %v", n, r.Steps, len(r.calls), r.Attempt, r.Phase, r.PendingApprovals)
		}
		if m := r.Messages[min(1, len(r.Messages)-1)]; n >= 3 && !answered {
			if m.Error != message.Void || m.Open() || len(m.Calls()) != 0 || len(m.Parts) != 1 {
				t.Errorf("after %d events the open message is %+v", n, m)
			}
			if h := r.History(); len(h) != 1 {
				t.Errorf("after %d events a model is sent %d messages", n, len(h))
			}
		} else if diff := cmp.Diff(before.Messages, r.Messages); diff != "" {
			t.Errorf("after %d events the resume changed (-before +after):\n%s", n, diff)
		}
		if got := r.Worked(begin.Add(time.Hour + time.Minute)); got != time.Duration(n-1)*time.Second+time.Minute {
			t.Errorf("after %d events the run has worked %s", n, got)
		}
		// The step begins anew under another id.
		for _, e := range []event.Event{
			{Data: event.StepStart{Step: r.Steps + 1}},
			{Message: "m9", Part: "p9", Data: event.ModelRequest{Step: r.Steps + 1}},
			{Message: "m9", Part: "p10", Call: "c9", Data: event.ToolInputStart{}},
			{Message: "m9", Data: event.ModelResponse{}},
		} {
			if err := r.Apply(e); err != nil {
				t.Errorf("after %d events: %v", n, err)
			}
		}
		if r.Steps != steps+1 || r.Step("c9") != steps+1 {
			t.Errorf("after %d events the next step is %d", n, r.Steps)
		}
	}
}

func TestSuspendedRunKeepsWhatItWaitsFor(t *testing.T) {
	events := append(conversation[:17:17], event.Event{Data: event.RunFinished{Phase: Suspended, ExitCode: 3}})
	r := fold(t, events...)
	if diff := cmp.Diff([]string{"c1"}, r.PendingApprovals); diff != "" || r.Call("c1").State != message.StatePending {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	r = fold(t, append(events, event.Event{Data: event.RunResumed{Attempt: 2}})...)
	if r.PendingApprovals != nil || r.Finished != nil || !r.EndTime.IsZero() {
		t.Errorf("pending %v, finished %v", r.PendingApprovals, r.Finished)
	}
}

func TestPendingApprovals(t *testing.T) {
	asked := conversation[:17]
	for name, c := range map[string]struct {
		reason string
		events []event.Payload
		want   []string
	}{
		"asked":        {"whoever is asked is waited for", nil, []string{"c1"}},
		"asked twice":  {"one question is one", []event.Payload{event.ApprovalRequested{}}, []string{"c1"}},
		"answered":     {"an answer ends the wait", []event.Payload{event.ApprovalDecided{}}, nil},
		"cancelled":    {"so does the end of the call", []event.Payload{event.ToolError{}}, nil},
		"finished":     {"and that of the run", []event.Payload{event.RunFinished{Phase: Cancelled}}, nil},
		"given up":     {"a request for a step more does not", []event.Payload{event.ModelRequest{}}, []string{"c1"}},
		"taken up":     {"whoever takes up the run asks anew", []event.Payload{event.RunResumed{Attempt: 2}, event.ApprovalRequested{}}, []string{"c1"}},
		"unknown call": {"a call that may have happened is asked about", []event.Payload{event.ApprovalDecided{}, event.ToolCall{}, event.RunResumed{Attempt: 2}, event.ApprovalRequested{}}, []string{"c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			events := asked[:len(asked):len(asked)]
			for _, p := range c.events {
				e := event.Event{Message: "m1", Call: "c1", Data: p}
				if p.Type() == event.TypeModelRequest {
					e.Message = "m2"
				}
				events = append(events, e)
			}
			if r := fold(t, events...); len(r.PendingApprovals) != len(c.want) || len(c.want) > 0 && r.PendingApprovals[0] != c.want[0] {
				t.Errorf("%s: got %v, want %v", c.reason, r.PendingApprovals, c.want)
			}
		})
	}
}

func TestFinishClosesWhatIsOpen(t *testing.T) {
	for n := 1; n < len(conversation)-1; n++ {
		events := append(conversation[:n:n], event.Event{Data: event.RunFinished{Phase: Cancelled}})
		r := fold(t, events...)
		now := r.EndTime.UnixMilli()
		for i, m := range r.Messages {
			if m.Open() || m.Time.Completed == 0 {
				t.Errorf("after %d events message %d stays open", n, i)
			}
			if aborted := n >= 3 && n < 12 && i == 1; (m.Error == message.Aborted) != aborted || aborted && m.Time.Completed != now {
				t.Errorf("after %d events message %d has error %q", n, i, m.Error)
			}
			for _, p := range m.Parts {
				if p.Start == 0 || p.End == 0 {
					t.Errorf("after %d events part %s stays open", n, p.ID)
				}
			}
			for _, c := range m.Calls() {
				if c.State != message.StateCompleted && (c.State != message.StateError || c.Result == nil || c.End == 0) {
					t.Errorf("after %d events call %s is %+v", n, c.CallID, c)
				}
			}
		}
	}
}

func TestAnEndThatCouldNotBeToldCounts(t *testing.T) {
	r := fold(t, append(conversation[:len(conversation):len(conversation)], event.Event{Data: event.RunFinished{Phase: Failed, Reason: "Internal"}})...)
	if r.Phase != Failed || r.Finished.Reason != "Internal" {
		t.Errorf("phase %s, reason %s", r.Phase, r.Finished.Reason)
	}
}

func TestWorked(t *testing.T) {
	if got := (&Run{}).Worked(begin); got != 0 {
		t.Errorf("a run without events has worked %s", got)
	}
	r := fold(t, conversation...)
	if got, want := r.Worked(begin.Add(time.Hour)), time.Duration(len(conversation)-1)*time.Second; got != want {
		t.Errorf("a run that has ended has worked %s, want %s", got, want)
	}
	r = fold(t, conversation[:5]...)
	for _, e := range []event.Event{
		{Time: begin.Add(-time.Hour), Data: event.Warning{}},
		{Time: begin, Data: event.RunResumed{Attempt: 2}},
	} {
		if err := r.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Worked(begin.Add(time.Second)); got != time.Second {
		t.Errorf("with a clock that was set back the run has worked %s", got)
	}
}

// The result of a run that two processes worked on covers both.
func TestResultCoversTheWholeRun(t *testing.T) {
	cost := message.Cost(1_000_000_000_000)
	events := append(conversation[:11:11], []event.Event{
		{Data: event.RunResumed{Attempt: 2}}, // m1, c1 and c2 are void
		{Data: event.StepStart{Step: 1}},
		{Message: "m2", Part: "q0", Data: event.ModelRequest{Step: 1}},
		{Message: "m2", Part: "q1", Call: "d1", Data: event.ToolInputStart{Tool: "bash"}},
		{Message: "m2", Data: event.ModelResponse{Tokens: message.Usage{Input: 7}, Cost: &cost}},
		{Message: "m2", Call: "d1", Data: event.ToolInputEnd{Tool: "bash", Raw: "{}", Input: json.RawMessage(`{}`)}},
		{Message: "m2", Call: "d1", Data: event.ToolCall{Tool: "bash", Args: json.RawMessage(`{}`)}},
		{Data: event.RunResumed{Attempt: 3}},
		{Message: "m2", Call: "d1", Data: event.ToolCall{Tool: "bash", Args: json.RawMessage(`{}`), Attempt: 2}},
		{Message: "m2", Call: "d1", Data: event.ToolResult{ToolResult: message.ToolResult{Text: "ok"}}},
		{Data: event.StepStart{Step: 2}},
		{Message: "m3", Part: "q2", Data: event.ModelRequest{Step: 2}},
		{Message: "m3", Data: event.ModelResponse{Tokens: message.Usage{Output: 2}, Cost: &cost}},
	}...)
	r := fold(t, events...)
	got := r.Result("/j")
	if got.Steps != 2 || got.Tokens.Input != 7 || got.Tokens.Output != 2 || r.Cost != 2*cost || r.Unpriced {
		t.Errorf("steps %d, tokens %+v, cost %s", got.Steps, got.Tokens, r.Cost)
	}
	want := []CallResult{{ID: "d1", Tool: "bash", Args: json.RawMessage(`{}`), State: "completed", Exceeded: []message.Excess{}}}
	if diff := cmp.Diff(want, got.ToolCalls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if c := r.Call("d1"); c.Attempt != 2 {
		t.Errorf("attempt %d", c.Attempt)
	}
	// Two resumes, a second each, are not work.
	if got, want := r.Worked(r.LastTime), time.Duration(len(events)-1-2)*time.Second; got != want {
		t.Errorf("worked %s, want %s", got, want)
	}
}
