package view

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// legal says what is wrong with a run that no sequence of events may lead to.
func (r *Run) legal() error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	calls, used, opened := 0, message.Usage{}, 0
	var answer *message.Message // the newest that is complete
	for _, m := range r.Messages {
		if m.Role == message.RoleUser && answer != nil {
			for _, c := range answer.Calls() {
				if c.Result == nil {
					say("message %s of the user stands before the result of call %s", m.ID, c.CallID)
				}
			}
		}
		if m.Role == message.RoleAssistant && m.Error == "" && !m.Open() && !m.Summary {
			answer = m
		}
		used = used.Add(m.Usage)
		if m.Open() {
			opened++
			if m != r.open {
				say("message %s is open and nobody writes it", m.ID)
			}
		}
		if m.Error == message.Void && (m.Text() != "" || len(m.Calls()) > 0) {
			say("void message %s says something", m.ID)
		}
		for i := range m.Parts {
			p := &m.Parts[i]
			if p.Start == 0 || p.End != 0 && p.End < p.Start {
				say("part %s is from %d to %d", p.ID, p.Start, p.End)
			}
			if p.End == 0 && p.Tool == nil && !m.Open() {
				say("part %s of a complete message is open", p.ID)
			}
			if p.Tool != nil {
				calls++
				wrong = append(wrong, r.legalCall(m, p))
			}
		}
	}
	if opened > 1 || opened == 0 && r.open != nil {
		say("%d messages are open", opened)
	}
	if calls != len(r.calls) {
		say("%d calls are in messages, %d are known", calls, len(r.calls))
	}
	if used != r.Tokens {
		say("messages took %+v tokens, the run %+v", used, r.Tokens)
	}
	for i, id := range r.PendingApprovals {
		if c := r.calls[id]; c == nil || !c.open() || slices.Contains(r.PendingApprovals[:i], id) {
			say("call %q waits for an answer", id)
		}
	}
	for id, c := range r.calls {
		if c.inquiry == nil {
			continue
		}
		if c.State != message.StateRunning || c.inquiry.ID == "" || c.inquiries < 1 || !slices.Contains(r.PendingApprovals, id) || r.Finished != nil {
			say("call %q has the open question %+v although it is %s, pending %v", id, c.inquiry, c.State, r.PendingApprovals)
		}
	}
	if ended := r.Finished != nil; ended == (r.Phase == Running) && r.Attempt > 0 || ended && r.open != nil {
		say("phase %s with finished %v", r.Phase, r.Finished)
	}
	return errors.Join(wrong...)
}

func (r *Run) legalCall(m *message.Message, p *message.Part) error {
	c := p.Tool
	known := r.calls[c.CallID]
	switch ended := c.State == message.StateCompleted || c.State == message.StateError; {
	case known == nil || known.ToolPart != c || known.in != m || &m.Parts[known.at] != p:
		return fmt.Errorf("call %s is not known as it is", c.CallID)
	case ended != (c.Result != nil), ended != (c.End != 0), ended != (p.End != 0):
		return fmt.Errorf("call %s is %s, ended at %d with %v", c.CallID, c.State, c.End, c.Result)
	case c.State == message.StatePending && c.Attempt != 0, c.State == message.StateCompleted && c.Attempt == 0,
		c.State == message.StateRunning && (c.Attempt == 0 || c.Start == 0), c.Attempt > max(1, r.Attempt):
		return fmt.Errorf("call %s is %s at attempt %d of %d", c.CallID, c.State, c.Attempt, r.Attempt)
	case r.Finished != nil && r.Phase != Suspended && !ended:
		return fmt.Errorf("call %s is %s although the run has ended", c.CallID, c.State)
	}
	return nil
}

// script makes events of bytes: each is one event, about one of few messages,
// parts and calls, so that many of them fit together.
func script(b []byte) (events []event.Event) {
	payloads := event.Payloads()
	for len(b) >= 3 {
		kind, ids, number := b[0], b[1], int(b[2])
		b = b[3:]
		e := event.Event{
			Message: fmt.Sprint("m", ids%4), Part: fmt.Sprint("p", ids/4%4), Call: fmt.Sprint("c", ids/16%4),
			Data: payloads[int(kind)%len(payloads)],
		}
		switch d := e.Data.(type) {
		case event.RunResumed:
			d.Attempt = number % 8
			e.Data = d
		case event.RunFinished:
			d.Phase = []string{Succeeded, Failed, Cancelled, Suspended}[number%4]
			e.Data = d
		case event.StepStart:
			d.Step = number % 8
			e.Data = d
		case event.ModelRequest:
			d.Summary = number%3 == 0
			e.Data = d
		case event.ModelResponse:
			d.Tokens.Input = int64(number)
			e.Data = d
		case event.ContextCompaction:
			d.Tokens.Input = int64(number)
			if number%2 == 0 {
				d.TailStart = fmt.Sprint("m", number/2%4)
			}
			e.Data = d
		case event.ContextPrune:
			d.Calls = []event.PrunedCall{{Call: e.Call, Blob: "b"}, {Call: fmt.Sprint("c", number%4), Blob: "b"}}
			e.Data = d
		case event.ToolCall:
			d.Attempt = number % 4
			e.Data = d
		case event.ToolInputDelta:
			d.Text = "x"
			e.Data = d
		case event.QuestionAsked:
			if number > 0 {
				d.ID, d.Text, d.ExpiresAt = fmt.Sprint("q", number%4), "?", int64(number)
			}
			e.Data = d
		case event.QuestionAnswered:
			d.ID, d.State = fmt.Sprint("q", number%4), message.ReplyAnswered
			if number >= 128 {
				d.Request = fmt.Sprint("r", number%8)
			}
			e.Data = d
		case event.MessageReceived:
			d.ID = fmt.Sprint("in", number%8)
			e.Data = d
		}
		events = append(events, e)
	}
	return events
}

// follow applies a script: no sequence of events leads to a run that may not
// be, a refused event changes nothing, and the same events lead to the same run.
func follow(t *testing.T, b []byte) {
	t.Helper()
	var r, taken Run
	for i, e := range script(b) {
		e.Seq, e.Run, e.Time = int64(i+1), "r", begin.Add(time.Duration(i)*time.Second)
		if r.Apply(e) != nil {
			continue
		}
		if err := r.legal(); err != nil {
			t.Fatalf("event %d (%s): %v", i, e.Type(), err)
		}
		if err := taken.Apply(e); err != nil {
			t.Fatalf("event %d (%s) was taken, but not without the refused ones: %v", i, e.Type(), err)
		}
	}
	r.History()
	r.Result("/j")
	if r.Worked(r.LastTime) < 0 {
		t.Error("a run has worked less than no time")
	}
	if diff := cmp.Diff(&taken, &r, cmpopts.IgnoreUnexported(Run{}, Turn{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("refused events have changed the run (-without +with):\n%s", diff)
	}
}

func TestRandomEvents(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		b := make([]byte, 3*(1+random.IntN(200)))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		copy(b, []byte{0, 0, 0}) // most of what follows needs a begin
		follow(t, b)
	}
}

func FuzzApply(f *testing.F) {
	kinds := map[event.Type]byte{}
	for i, p := range event.Payloads() {
		kinds[p.Type()] = byte(i)
	}
	var seed []byte
	for _, k := range []event.Type{
		event.TypeRunStarted, event.TypeStepStart, event.TypeModelRequest, event.TypeTextStart, event.TypeTextEnd, event.TypeToolInputStart,
		event.TypeToolInputDelta, event.TypeModelResponse, event.TypeToolInputEnd, event.TypePolicyDecision, event.TypeApprovalRequested,
		event.TypeApprovalDecided, event.TypeToolCall, event.TypeRunResumed, event.TypeToolCall, event.TypeToolResult, event.TypeStepFinish,
		event.TypeMessageReceived, event.TypeContextPrune, event.TypeModelRequest, event.TypeContextCompaction, event.TypeRunFinished, event.TypeRunResumed,
	} {
		ids := byte(1)
		switch {
		case k == event.TypeRunStarted:
			ids = 0
		case len(seed) > 17*3:
			ids = 2
		}
		seed = append(seed, kinds[k], ids, byte(len(seed)/3))
	}
	f.Add(seed)
	f.Add(seed[:30])
	// A running call asks twice; the second question is open when it is taken up by
	// another process, runs again, asks again and ends.
	asks := []byte{0, 0, 0}
	for _, k := range []struct {
		of     event.Type
		number byte
	}{
		{event.TypeStepStart, 1},
		{event.TypeModelRequest, 1},
		{event.TypeToolInputStart, 0},
		{event.TypeToolInputEnd, 0},
		{event.TypeModelResponse, 1},
		{event.TypeToolCall, 0},
		{event.TypeQuestionAsked, 1},
		{event.TypeQuestionAnswered, 129},
		{event.TypeQuestionAsked, 2},
		{event.TypeQuestionAsked, 3},
		{event.TypeQuestionAnswered, 3},
		{event.TypeRunResumed, 2},
		{event.TypeQuestionAnswered, 2},
		{event.TypeToolCall, 2},
		{event.TypeQuestionAsked, 3},
		{event.TypeToolResult, 0},
		{event.TypeQuestionAnswered, 3},
		{event.TypeRunFinished, 0},
	} {
		asks = append(asks, kinds[k.of], 1, k.number)
	}
	f.Add(asks)
	f.Add([]byte{0, 0, 0, kinds[event.TypeRunFinished], 0, 3, kinds[event.TypeRunResumed], 0, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) <= 3*200 {
			follow(t, b)
		}
	})
}
