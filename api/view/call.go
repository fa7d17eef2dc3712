package view

import (
	"fmt"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// call is a tool call and its state.
type call struct {
	*message.ToolPart
	in   *message.Message
	at   int // place of its part in the message
	step int
	// writing holds the arguments while the model writes them.
	writing []byte
	// question is the newest one about the call, and answer the newest answer.
	question *Question
	answer   *Answer
	// inquiry is the open question of the running call, nil when there is none;
	// inquiries counts all of them, and reply is the newest end of one.
	inquiry   *Inquiry
	inquiries int
	reply     *Reply
	// requests are the ids of all requests that have been answers.
	requests []string
}

// Question is what a person was asked about a call, and when.
type Question struct {
	event.ApprovalRequested
	Time time.Time
}

// Answer is what was answered about a call, and when.
type Answer struct {
	message.Answer
	Time time.Time
	// Essence is that of the decision about which was asked: an answer is good for
	// nothing else. "" is that of a call that may have happened already.
	Essence string
}

// Question returns the newest question about a call, nil when there was none.
func (r *Run) Question(id string) *Question {
	if c := r.calls[id]; c != nil {
		return c.question
	}
	return nil
}

// Answer returns the newest answer about a call, nil when there is none.
func (r *Run) Answer(id string) *Answer {
	if c := r.calls[id]; c != nil {
		return c.answer
	}
	return nil
}

// Inquiry is a question that a running call asks a person, and when it asked.
type Inquiry struct {
	message.Inquiry
	Time time.Time
}

// Reply is the end of an Inquiry, and when it came.
type Reply struct {
	message.Reply
	Time time.Time
}

// Inquiry returns the open question of a running call, nil when there is none.
func (r *Run) Inquiry(id string) *Inquiry {
	if c := r.calls[id]; c != nil {
		return c.inquiry
	}
	return nil
}

// Inquiries counts the questions that a call has asked.
func (r *Run) Inquiries(id string) int {
	if c := r.calls[id]; c != nil {
		return c.inquiries
	}
	return 0
}

// Reply returns the newest answer to a question of a call, nil when there is none.
func (r *Run) Reply(id string) *Reply {
	if c := r.calls[id]; c != nil {
		return c.reply
	}
	return nil
}

// MessageOf returns the id of the message that holds a call, or "".
func (r *Run) MessageOf(id string) string {
	if c := r.calls[id]; c != nil {
		return c.in.ID
	}
	return ""
}

// Used reports whether a request has been an answer about a call: each counts once.
func (r *Run) Used(call, request string) bool {
	c := r.calls[call]
	return c != nil && slices.Contains(c.requests, request)
}

// Call returns the tool call of that id, nil when there is none.
func (r *Run) Call(id string) *message.ToolPart {
	if c := r.calls[id]; c != nil {
		return c.ToolPart
	}
	return nil
}

// Step returns the step that asked for a call, counted from 1.
func (r *Run) Step(id string) int {
	if c := r.calls[id]; c != nil {
		return c.step
	}
	return 0
}

func (c *call) open() bool { return c.State == message.StatePending || c.State == message.StateRunning }

// openCall begins a call: the model has begun to write it.
func (r *Run) openCall(e event.Event, d event.ToolInputStart) error {
	m, err := r.writing(e)
	if err != nil {
		return err
	}
	if r.calls[e.Call] != nil {
		return fmt.Errorf("call %q exists", e.Call)
	}
	p := &message.ToolPart{CallID: e.Call, Tool: d.Tool, State: message.StatePending}
	r.calls[e.Call] = &call{ToolPart: p, in: m, at: len(m.Parts), step: r.Steps}
	m.Parts = append(m.Parts, message.Part{ID: e.Part, Type: message.PartTool, Tool: p, Start: e.Time.UnixMilli()})
	return nil
}

// applyCall adds what becomes of a call. A call that has ended stays as it is.
func (r *Run) applyCall(e event.Event) error {
	c := r.calls[e.Call]
	if c == nil {
		return fmt.Errorf("no call %q", e.Call)
	}
	if !c.open() {
		if e.Type() == event.TypeToolProgress {
			return nil // the last piece may come after the result
		}
		return fmt.Errorf("call %q has ended", e.Call)
	}
	if about := e.Type(); c.inquiry != nil && (about == event.TypeApprovalRequested || about == event.TypeApprovalDecided) {
		return fmt.Errorf("call %q runs and waits for the answer to question %q, not for an approval", e.Call, c.inquiry.ID)
	}
	switch d := e.Data.(type) {
	case event.ToolInputDelta:
		return r.writeCall(c, d)
	case event.ToolInputEnd:
		c.Repaired = len(d.Input) > 0 && d.Tool != c.Tool
		c.Tool, c.Raw, c.Input, c.Workspace, c.writing = d.Tool, d.Raw, d.Input, d.Workspace, nil
	case event.PolicyDecision:
		c.Decision = &d.Decision
	case event.ApprovalRequested:
		c.question = &Question{d, e.Time}
		r.decided(e.Call)
		r.PendingApprovals = append(r.PendingApprovals, e.Call)
	case event.ApprovalDecided:
		c.Approval, c.answer = d.State, &Answer{d.Answer, e.Time, c.asked()}
		if d.Request != "" {
			c.requests = append(c.requests, d.Request)
		}
		switch d.State {
		case message.Approved:
			r.Granted++
		case message.Rejected:
			r.Refused++
		case message.Expired, message.Unanswered: // without an answer
		}
		if d.State == message.Approved && d.Scope == message.Always {
			r.Remembered = append(r.Remembered, d.Remember...)
		}
		r.decided(e.Call)
	case event.ToolCall:
		return r.runCall(c, d, e)
	case event.QuestionAsked:
		return r.inquire(c, d, e)
	case event.QuestionAnswered:
		return r.settle(c, d, e)
	case event.ToolProgress:
		if d.Title == "" && len(d.Metadata) == 0 {
			c.Progress = d.Text
			return nil
		}
		if d.Title != "" {
			c.Title = d.Title
		}
		if len(d.Metadata) > 0 {
			c.Metadata = d.Metadata
		}
	case event.ToolResult:
		return r.endCall(c, message.StateCompleted, &d.ToolResult, e)
	case event.ToolError:
		return r.endCall(c, message.StateError, &d.ToolResult, e)
	default:
		return fmt.Errorf("no rule for events of type %s", e.Type())
	}
	return nil
}

// asked is the essence of the decision about which was asked last.
func (c *call) asked() string {
	if c.question == nil || c.question.Unknown || c.Decision == nil {
		return ""
	}
	return c.Decision.Essence()
}

func (r *Run) writeCall(c *call, d event.ToolInputDelta) error {
	if c.in != r.open {
		return fmt.Errorf("call %q is complete", c.CallID)
	}
	c.writing = append(c.writing, d.Text...)
	if len(d.Metadata) > 0 {
		c.in.Parts[c.at].Metadata = d.Metadata
	}
	return nil
}

// runCall is the intent. A call that a crash has interrupted is running already
// and may be run again, once in every process.
func (r *Run) runCall(c *call, d event.ToolCall, e event.Event) error {
	attempt := max(1, d.Attempt)
	if attempt != c.Attempt+1 || attempt > r.Attempt {
		return fmt.Errorf("call %q was run %d times, by %d processes; this is not attempt %d", c.CallID, c.Attempt, r.Attempt, attempt)
	}
	if attempt == 1 {
		if err := c.Move(message.StateRunning); err != nil {
			return err
		}
	}
	c.inquiry = nil // that of the attempt before was never answered
	c.Input, c.Start, c.Attempt, c.Progress = d.Args, e.Time.UnixMilli(), attempt, ""
	c.Title, c.Metadata = "", nil
	return nil
}

// inquire opens a question of a running call.
func (r *Run) inquire(c *call, d event.QuestionAsked, e event.Event) error {
	switch {
	case c.State != message.StateRunning:
		return fmt.Errorf("call %q does not run", c.CallID)
	case d.ID == "":
		return fmt.Errorf("the question of call %q has no id", c.CallID)
	case c.inquiry != nil:
		return fmt.Errorf("call %q waits for the answer to another question", c.CallID)
	case slices.Contains(r.PendingApprovals, c.CallID):
		return fmt.Errorf("call %q waits for an approval", c.CallID)
	}
	c.inquiry = &Inquiry{d.Inquiry, e.Time}
	c.inquiries++
	r.PendingApprovals = append(r.PendingApprovals, c.CallID)
	return nil
}

// settle closes a question of a running call.
func (r *Run) settle(c *call, d event.QuestionAnswered, e event.Event) error {
	if c.inquiry == nil || c.inquiry.ID != d.ID {
		return fmt.Errorf("call %q does not wait for the answer to question %q", c.CallID, d.ID)
	}
	c.inquiry, c.reply = nil, &Reply{d.Reply, e.Time}
	if d.Request != "" {
		c.requests = append(c.requests, d.Request)
	}
	r.decided(c.CallID)
	return nil
}

func (r *Run) endCall(c *call, to message.ToolState, result *message.ToolResult, e event.Event) error {
	if !message.CanMove(c.State, to) {
		return c.Move(to)
	}
	c.end(to, result, e.Time)
	r.decided(c.CallID)
	if result.Todos != nil {
		r.Todos = result.Todos
	}
	if p := result.Publication; p != nil && !result.Failed() {
		r.Publications = append(r.Publications, Publication{Call: c.CallID, Publication: *p})
	}
	r.count(result.Child)
	r.count(result.Coding.Used())
	return nil
}

// count adds what a child has used: a run answers for the runs that it starts.
func (r *Run) count(child *message.ChildRun) {
	if child == nil {
		return
	}
	r.Tokens = r.Tokens.Add(child.Tokens)
	if child.Cost != nil {
		r.Cost = r.Cost.Add(*child.Cost)
	}
	r.Unpriced = r.Unpriced || child.Unpriced
	if child.Estimated != nil {
		r.Uncounted, r.Estimated = true, r.Estimated.Add(*child.Estimated)
	}
	r.Turn().count(child)
}

// end is a move that the table allows.
func (c *call) end(to message.ToolState, result *message.ToolResult, at time.Time) {
	now := at.UnixMilli()
	c.State, c.Progress, c.Result, c.End, c.inquiry = to, "", result, now, nil
	c.Title, c.Metadata = "", nil
	c.in.Parts[c.at].End = now
}

// decided ends the wait for an answer.
func (r *Run) decided(call string) {
	r.PendingApprovals = slices.DeleteFunc(r.PendingApprovals, func(id string) bool { return id == call })
}
