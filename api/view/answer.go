package view

import (
	"fmt"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// request opens the message that will hold the answer. A request that is still
// open was given up: its message is void.
func (r *Run) request(e event.Event, d event.ModelRequest) {
	if m := r.Message(); m.Open() {
		r.void(m, e.Time)
	}
	now := e.Time.UnixMilli()
	m := &message.Message{
		ID: e.Message, Role: message.RoleAssistant, Agent: r.Started.Agent, Mode: r.Started.Mode, ParentID: r.lastUser(),
		Path: &message.Path{Cwd: r.Started.Workspace.Dir, Root: r.Started.Workspace.Dir}, Summary: d.Summary,
		Time: message.Time{Created: now},
	}
	if !d.Summary {
		m.Parts = []message.Part{{ID: e.Part, Type: message.PartStepStart, Step: &message.Step{Step: d.Step}, Start: now, End: now}}
	}
	r.Messages = append(r.Messages, m)
}

// respond completes the message; what was streamed before counts only now.
func (r *Run) respond(e event.Event, d event.ModelResponse) error {
	m, err := r.message(e.Message)
	if err != nil {
		return err
	}
	r.answer(m, d.Model, d.Tokens, d.Cost, e.Time)
	m.Finish = d.Finish
	for _, c := range m.Calls() {
		c.Raw = string(r.writing[c.CallID])
		delete(r.writing, c.CallID)
	}
	return nil
}

func (r *Run) answer(m *message.Message, by message.ModelRef, tokens message.Usage, cost *message.Cost, now time.Time) {
	m.Model, m.Usage, m.Cost, m.Time.Completed = &by, tokens, cost, now.UnixMilli()
	r.Tokens = r.Tokens.Add(tokens)
	if cost == nil {
		r.Unpriced = true
	} else {
		r.Cost += *cost
	}
}

// voidAttempt drops what a failed attempt has streamed: no call of it has run.
func (r *Run) voidAttempt(e event.Event, d event.ModelRetry) error {
	m, err := r.message(e.Message)
	if err != nil {
		return err
	}
	r.forget(m)
	m.Parts = slices.DeleteFunc(m.Parts, func(p message.Part) bool {
		return p.Type != message.PartStepStart && p.Type != message.PartRetry
	})
	now := e.Time.UnixMilli()
	m.Parts = append(m.Parts, message.Part{ID: e.Part, Type: message.PartRetry, Retry: &d.Retry, Start: now, End: now})
	return nil
}

// void marks a message that will never be answered.
func (r *Run) void(m *message.Message, now time.Time) {
	r.forget(m)
	m.Parts, m.Error, m.Time.Completed = nil, message.Void, now.UnixMilli()
}

// forget drops the calls of a message that was not completed.
func (r *Run) forget(m *message.Message) {
	for _, c := range m.Calls() {
		delete(r.calls, c.CallID)
		delete(r.steps, c.CallID)
		delete(r.writing, c.CallID)
	}
}

func (r *Run) finishStep(e event.Event, d event.StepFinish) error {
	if e.Message == "" {
		return nil // journals of version 0.1 do not say which message
	}
	m, err := r.message(e.Message)
	if err != nil {
		return err
	}
	now := e.Time.UnixMilli()
	m.Parts = append(m.Parts, message.Part{
		ID: e.Part, Type: message.PartStepFinish, Start: now, End: now,
		Step: &message.Step{Step: d.Step, Reason: d.Finish, Tokens: &d.Tokens, Cost: d.Cost},
	})
	return nil
}

// note adds a part that tells of the files to the newest message.
func (r *Run) note(e event.Event, p message.Part) {
	if m := r.Message(); m != nil {
		p.ID, p.Start, p.End = e.Part, e.Time.UnixMilli(), e.Time.UnixMilli()
		m.Parts = append(m.Parts, p)
	}
}

func patch(d event.WorkspacePatch) *message.Patch {
	p := &message.Patch{Hash: d.Change, Files: make([]string, len(d.Files))}
	for i, f := range d.Files {
		p.Files[i] = f.Path
	}
	return p
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
