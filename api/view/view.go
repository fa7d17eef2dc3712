// Package view folds the events of a run into what can be seen of it.
//
// There is one fold. The loop, the terminal, the web page, reports, resume and
// replay all read a run through it, so that they cannot disagree.
package view

import (
	"fmt"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// Phases of a run.
const (
	Running   = "Running"
	Suspended = "Suspended"
	Succeeded = "Succeeded"
	Failed    = "Failed"
	Cancelled = "Cancelled"
)

// Run is a run as its events tell it. The zero value is a run without events.
type Run struct {
	ID    string
	Phase string

	// Started is the event that opened the run; Finished is the event that
	// closed it, nil while it goes on.
	Started  event.RunStarted
	Finished *event.RunFinished

	StartTime, EndTime time.Time

	// Messages in order; the last one may still be streamed.
	Messages []*message.Message
	// Steps counts the model calls that were begun.
	Steps int
	// Tokens of all answers that are complete.
	Tokens message.Usage

	// Changes the run made to the files, and the blobs that hold them.
	Changes event.WorkspacePatch
	// Warnings in order.
	Warnings []string
	// PendingApprovals are the calls that wait for an answer.
	PendingApprovals []string

	// LastSeq is the number of the last event.
	LastSeq int64

	calls map[string]*message.ToolPart
	steps map[string]int // call id → step
}

// Apply adds one event. An event that the rules forbid, such as a result for a
// call that has ended, changes nothing and is an error; an event of an unknown
// type only counts.
func (r *Run) Apply(e event.Event) error {
	if r.calls == nil {
		r.calls, r.steps = map[string]*message.ToolPart{}, map[string]int{}
	}
	if err := r.apply(e); err != nil {
		return fmt.Errorf("event %d (%s): %w", e.Seq, e.Type(), err)
	}
	if e.Seq > 0 {
		r.LastSeq = e.Seq
	}
	return nil
}

func (r *Run) apply(e event.Event) error {
	switch d := e.Data.(type) {
	case event.RunStarted:
		r.start(e, d)
	case event.RunFinished:
		r.Finished, r.Phase, r.EndTime = &d, d.Phase, e.Time
		r.PendingApprovals = nil
	case event.UserMessage:
		r.user(e, d.Text, d.Synthetic)
	case event.StepStart:
		r.Steps = d.Step
	case event.StepFinish:
	case event.ModelRequest:
		r.Messages = append(r.Messages, &message.Message{
			ID: e.Message, Role: message.RoleAssistant, Agent: r.Started.Agent, ParentID: r.lastUser(),
			Path: &message.Path{Cwd: r.Started.Workspace.Dir, Root: r.Started.Workspace.Dir},
			Time: message.Time{Created: e.Time.UnixMilli()},
		})
	case event.ModelRetry:
		return r.voidAttempt(e)
	case event.ModelResponse:
		m, err := r.message(e.Message)
		if err != nil {
			return err
		}
		m.Model, m.Finish, m.Usage, m.Time.Completed = &d.Model, d.Finish, d.Tokens, e.Time.UnixMilli()
		r.Tokens = r.Tokens.Add(d.Tokens)
	case event.TextStart:
		return r.open(e, message.PartText)
	case event.ReasoningStart:
		return r.open(e, message.PartReasoning)
	case event.TextEnd:
		return r.close(e, d.Text)
	case event.ReasoningEnd:
		return r.close(e, d.Text)
	case event.TextDelta, event.ReasoningDelta, event.ToolInputDelta, event.ToolProgress, event.WorkspaceSnapshot:
		// Pieces are for watchers; the whole comes with the end of the part.
	case event.WorkspacePatch:
		r.Changes = d
	case event.Warning:
		r.Warnings = append(r.Warnings, d.Message)
	default:
		return r.applyCall(e)
	}
	return nil
}

func (r *Run) start(e event.Event, d event.RunStarted) {
	r.ID, r.Phase, r.Started, r.StartTime = e.Run, Running, d, e.Time
	r.user(e, d.Prompt, false)
}

func (r *Run) user(e event.Event, text string, synthetic bool) {
	now, model := e.Time.UnixMilli(), r.Started.Model
	r.Messages = append(r.Messages, &message.Message{
		ID: e.Message, Role: message.RoleUser, Agent: r.Started.Agent, Model: &model,
		Parts: []message.Part{{ID: e.Part, Type: message.PartText, Text: text, Synthetic: synthetic, Start: now, End: now}},
		Time:  message.Time{Created: now, Completed: now},
	})
}

// Message returns the newest message, nil before the first.
func (r *Run) Message() *message.Message {
	if len(r.Messages) == 0 {
		return nil
	}
	return r.Messages[len(r.Messages)-1]
}

// message returns the message of that id; events speak of the newest ones.
func (r *Run) message(id string) (*message.Message, error) {
	for _, m := range slices.Backward(r.Messages) {
		if m.ID == id {
			return m, nil
		}
	}
	return nil, fmt.Errorf("no message %q", id)
}

func (r *Run) lastUser() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == message.RoleUser {
			return m.ID
		}
	}
	return ""
}

func (r *Run) open(e event.Event, t message.PartType) error {
	m, err := r.message(e.Message)
	if err != nil {
		return err
	}
	m.Parts = append(m.Parts, message.Part{ID: e.Part, Type: t, Start: e.Time.UnixMilli()})
	return nil
}

func (r *Run) close(e event.Event, text string) error {
	m, err := r.message(e.Message)
	if err != nil {
		return err
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.ID == e.Part {
			p.Text, p.End = text, e.Time.UnixMilli()
			return nil
		}
	}
	return fmt.Errorf("no part %q", e.Part)
}

// voidAttempt drops what a failed attempt has streamed: no call of it has run.
func (r *Run) voidAttempt(e event.Event) error {
	m, err := r.message(e.Message)
	if err != nil {
		return err
	}
	for _, c := range m.Calls() {
		delete(r.calls, c.CallID)
		delete(r.steps, c.CallID)
	}
	m.Parts = nil
	return nil
}
