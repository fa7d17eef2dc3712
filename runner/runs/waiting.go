package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/journal"
)

// The states of a run whose call waits for an approval.
const (
	// Waits: its process takes an answer at once.
	Waits = "Waiting"
	// Suspended: a resume takes the answer.
	Suspended = "Suspended"
	// Interrupted: its process was killed; a resume takes the answer.
	Interrupted = "Interrupted"
)

// WaitingCall is a call that waits for an approval, with everything that is known
// about it.
type WaitingCall struct {
	// Ref is the run and the call as "agentctl approve" takes them.
	Ref   string `json:"ref"`
	Run   string `json:"run"`
	Agent string `json:"agent"`
	// State of the run.
	State string `json:"state"`

	Call    string          `json:"call"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Risk    string          `json:"risk"`
	Rule    string          `json:"rule"`
	Message string          `json:"message"`
	Facts   json.RawMessage `json:"facts"`
	Hash    string          `json:"hash"`
	// Unknown says that the call may have happened already.
	Unknown bool `json:"unknown"`
	// Always is what an approval for always would allow, Once why there is none.
	Always []message.Grant `json:"always"`
	Once   string          `json:"once,omitempty"`
	// AskedAt, and ExpiresAt unless the question waits for ever.
	AskedAt   time.Time  `json:"askedAt"`
	ExpiresAt *time.Time `json:"expiresAt"`

	// Question that the running call asks, instead of waiting for an approval; nil
	// for an approval.
	Question *message.Inquiry `json:"question,omitempty"`

	// Left is the answer that lies in the run's inbox until a resume takes it:
	// approved or rejected; "" is none.
	Left message.ApprovalState `json:"left,omitempty"`

	binding string
}

// Policy is what an approval for always would allow, as a manifest; "" is nothing.
func (w *WaitingCall) Policy() string {
	if len(w.Always) == 0 {
		return ""
	}
	return approval.Policy(w.Always)
}

// Write shows a call in full: nothing is cut, and what is invisible is named.
func (w *WaitingCall) Write(out io.Writer) error {
	if w.Question != nil {
		_, err := out.Write(approval.DescribeInquiry("tool "+w.Tool, *w.Question))
		return err
	}
	_, err := out.Write(approval.Describe(message.Question{
		Call: message.ToolCall{ID: w.Call, Tool: w.Tool, Args: w.Args}, Unknown: w.Unknown,
		Decision: message.Decision{Rule: w.Rule, Risk: w.Risk, Message: w.Message, Facts: w.Facts, Hash: w.Hash, Always: w.Always, Once: w.Once},
	}))
	return err
}

// Waiting lists the calls of all runs of a state folder that wait for an
// approval, those of the newest run first. A run that cannot be read is left out.
func Waiting(ctx context.Context, state string) ([]WaitingCall, error) {
	runs, err := journal.List(state)
	if err != nil {
		return nil, err
	}
	waiting := []WaitingCall{}
	for _, found := range runs {
		if quiet(found.Dir) {
			continue
		}
		v := &view.Run{}
		if Fold(ctx, found, v) != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			continue
		}
		waiting = append(waiting, waitingIn(found, v)...)
	}
	return waiting, nil
}

// quiet says whether nothing can wait in a run, by the last line of its journal.
func quiet(dir string) bool {
	e, err := journal.Last(dir)
	if err != nil {
		return false
	}
	f, ended := e.Data.(event.RunFinished)
	return ended && f.Phase != view.Suspended
}

func waitingIn(found journal.Found, v *view.Run) []WaitingCall {
	state := Interrupted
	switch {
	case v.Phase == view.Suspended:
		state = Suspended
	case journal.Held(found.Dir):
		state = Waits
	}
	inbox := approval.NewInbox(found.Dir, time.Now)
	var waiting []WaitingCall
	for _, id := range v.PendingApprovals {
		w := questionOf(v, id)
		if w == nil {
			continue
		}
		if w.Question != nil && state != Waits {
			continue // only the process that runs the call can take an answer
		}
		if w.State = state; state != Waits {
			w.ExpiresAt = nil // its process does not count down
			if r := inbox.Left(id, w.binding); r != nil {
				w.Left = r.State
			}
		}
		waiting = append(waiting, *w)
	}
	return waiting
}

// questionOf is the newest question about a call with everything that is known
// about it; nil is none.
func questionOf(v *view.Run, call string) *WaitingCall {
	p, q := v.Call(call), v.Question(call)
	if p != nil && v.Inquiry(call) != nil {
		return inquiryOf(v, call)
	}
	if p == nil || q == nil {
		return nil
	}
	w := &WaitingCall{
		Ref: v.ID + "/" + call, Run: v.ID, Agent: v.Started.Agent,
		Call: call, Tool: q.Tool, Args: q.Args, Risk: q.Risk, Rule: q.Rule, Message: q.Message, Hash: q.Hash,
		Unknown: q.Unknown, Always: []message.Grant{}, AskedAt: q.Time, binding: approval.Binding(v, call),
	}
	if d := p.Decision; d != nil {
		w.Facts, w.Once = d.Facts, d.Once
		w.Always = append(w.Always, d.Always...)
	}
	if q.Unknown {
		w.Always, w.Once = []message.Grant{}, "it may have happened already"
	}
	if q.ExpiresAt > 0 {
		at := time.UnixMilli(q.ExpiresAt)
		w.ExpiresAt = &at
	}
	return w
}

// inquiryOf is the question that a running call asks.
func inquiryOf(v *view.Run, call string) *WaitingCall {
	p, in := v.Call(call), v.Inquiry(call)
	w := &WaitingCall{
		Ref: v.ID + "/" + call, Run: v.ID, Agent: v.Started.Agent, Call: call, Tool: p.Tool, Args: p.Input, Question: &in.Inquiry,
		Always: []message.Grant{}, Once: "it is a question", AskedAt: in.Time, binding: approval.Binding(v, call),
	}
	if d := p.Decision; d != nil {
		w.Risk, w.Rule, w.Hash = d.Risk, d.Rule, d.Hash
	}
	if in.ExpiresAt > 0 {
		at := time.UnixMilli(in.ExpiresAt)
		w.ExpiresAt = &at
	}
	return w
}

// closed returns why a call does not wait for an approval.
func closed(v *view.Run, call string) error {
	p, a := v.Call(call), v.Answer(call)
	switch {
	case p == nil:
		return reason.Usagef("run %s has no call %s", v.ID, call)
	case v.Reply(call) != nil:
		r := v.Reply(call)
		return fmt.Errorf("the question of call %s of run %s is %s already, by %s", call, v.ID, r.State, r.By)
	case a != nil:
		return fmt.Errorf("call %s of run %s was answered already: %s by %s", call, v.ID, a.State, a.By)
	case p.State == message.StateCompleted || p.State == message.StateError:
		return fmt.Errorf("call %s of run %s has ended already", call, v.ID)
	}
	return reason.Usagef("call %s of run %s waits for no approval", call, v.ID)
}
