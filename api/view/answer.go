package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// applyMessage adds what is said: by the user, and by the model piece by piece.
func (r *Run) applyMessage(e event.Event) error {
	switch d := e.Data.(type) {
	case event.UserMessage:
		return r.goOn(e, d.Text, d.Synthetic, d.Origin)
	case event.MessageReceived:
		return r.receive(e, d)
	case event.ModelRequest:
		return r.request(e, d)
	case event.ModelRetry:
		return r.voidAttempt(e, d)
	case event.ModelResponse:
		return r.respond(e, d)
	case event.ContextCompaction:
		return r.compact(e, d)
	case event.TextStart:
		return r.openPart(e, message.PartText)
	case event.ReasoningStart:
		return r.openPart(e, message.PartReasoning)
	case event.TextEnd:
		return r.closePart(e, message.PartText, d.Text, d.Metadata)
	case event.ReasoningEnd:
		return r.closePart(e, message.PartReasoning, d.Text, d.Metadata)
	case event.TextDelta, event.ReasoningDelta:
		return nil // pieces are for watchers; the whole comes with the end of the part
	case event.ToolInputStart:
		return r.openCall(e, d)
	}
	return r.applyCall(e)
}

// add appends a message. Ids are unique, so that an event speaks of one.
func (r *Run) add(m *message.Message) error {
	if m.ID != "" && r.messages[m.ID] != nil {
		return fmt.Errorf("message %q exists", m.ID)
	}
	r.messages[m.ID] = m
	r.Messages = append(r.Messages, m)
	return nil
}

func (r *Run) user(e event.Event, text string, synthetic bool, from *message.Origin) error {
	now, model := e.Time.UnixMilli(), r.Started.Model
	m := &message.Message{
		ID: e.Message, Role: message.RoleUser, Agent: r.Started.Agent, Model: &model,
		Parts: []message.Part{{ID: e.Part, Type: message.PartText, Text: text, Synthetic: synthetic, Origin: from, Start: now, End: now}},
		Time:  message.Time{Created: now, Completed: now},
	}
	if err := r.add(m); err != nil {
		return err
	}
	r.asked = m
	return nil
}

// goOn adds a message of the user after the first. It is between two steps:
// providers want the results of calls right behind the calls.
func (r *Run) goOn(e event.Event, text string, synthetic bool, from *message.Origin) error {
	if r.open != nil {
		return fmt.Errorf("message %q is being written", r.open.ID)
	}
	for _, m := range slices.Backward(r.Messages) {
		if m.Role != message.RoleAssistant || m.Summary || m.Error != "" {
			continue
		}
		for _, c := range m.Calls() {
			if c.Result == nil {
				return fmt.Errorf("call %q has no result yet", c.CallID)
			}
		}
		break
	}
	return r.user(e, text, synthetic, from)
}

// receive adds a message that somebody sent while the run went on.
func (r *Run) receive(e event.Event, d event.MessageReceived) error {
	if r.Received(d.ID) {
		return fmt.Errorf("message %q was received before", d.ID)
	}
	if err := r.goOn(e, d.Text, false, d.Origin); err != nil {
		return err
	}
	r.received[d.ID] = true
	return nil
}

// Received reports whether the run has read the message that was sent under an id.
func (r *Run) Received(id string) bool { return r.received[id] }

// attach adds files to the message that asks.
func (r *Run) attach(e event.Event, files []message.File) {
	now := e.Time.UnixMilli()
	for i, f := range files {
		r.asked.Parts = append(r.asked.Parts, message.Part{
			ID: fmt.Sprintf("%s-file%d", e.Part, i+1), Type: message.PartFile, File: &f, Start: now, End: now,
		})
	}
}

// expand adds what the author of a prompt asks for to its message: calls, which are open until
// they have their results, and agents.
func (r *Run) expand(e event.Event, all []message.Expansion) {
	now, m := e.Time.UnixMilli(), r.asked
	for i, x := range all {
		p := message.Part{ID: fmt.Sprintf("%s-expand%d", e.Part, i+1), Synthetic: true, Start: now}
		if x.Agent != "" {
			p.Type, p.Agent, p.End = message.PartAgent, &message.AgentRef{Name: x.Agent, Source: x.Text}, now
		} else {
			p.Type, p.Tool = message.PartTool, &message.ToolPart{
				CallID: fmt.Sprintf("%s-expand%d", m.ID, i+1), Tool: x.Tool, Raw: string(x.Args), Expands: x.Text, State: message.StatePending,
			}
			r.calls[p.Tool.CallID] = &call{ToolPart: p.Tool, in: m, at: len(m.Parts), step: r.Steps}
		}
		m.Parts = append(m.Parts, p)
	}
}

// request opens the message that will hold the answer. A request that is still
// open was given up: its message is void.
func (r *Run) request(e event.Event, d event.ModelRequest) error {
	now := e.Time.UnixMilli()
	m := &message.Message{
		ID: e.Message, Role: message.RoleAssistant, Agent: r.Started.Agent, Mode: r.Started.Mode, ParentID: r.asked.ID,
		Path: &message.Path{Cwd: r.Started.Workspace.Dir, Root: r.Started.Workspace.Dir}, Summary: d.Summary,
		Time: message.Time{Created: now},
	}
	if !d.Summary {
		m.Parts = []message.Part{{ID: e.Part, Type: message.PartStepStart, Step: &message.Step{Step: d.Step}, Start: now, End: now}}
	}
	if err := r.add(m); err != nil {
		return err
	}
	r.void(e.Time)
	r.open = m
	return nil
}

// writing returns the message of an event that adds to an answer.
func (r *Run) writing(e event.Event) (*message.Message, error) {
	m, err := r.message(e.Message)
	if err == nil && m != r.open {
		err = fmt.Errorf("message %q is not being written", m.ID)
	}
	return m, err
}

// respond completes the message; what was streamed before counts only now.
func (r *Run) respond(e event.Event, d event.ModelResponse) error {
	m, err := r.writing(e)
	if err != nil {
		return err
	}
	if m.Summary {
		return errors.New("the answer to a request for a summary is a compaction")
	}
	r.answer(m, d.Model, d.Tokens, d.Estimate, d.Cost, e.Time)
	m.Finish = d.Finish
	for _, p := range m.Calls() {
		if c := r.calls[p.CallID]; c.writing != nil {
			c.Raw, c.writing = string(c.writing), nil
		}
	}
	return nil
}

func (r *Run) answer(m *message.Message, by message.ModelRef, tokens message.Usage, estimate *message.Usage, cost *message.Cost, now time.Time) {
	m.Model, m.Usage, m.Estimate, m.Cost, m.Time.Completed = &by, tokens, estimate, cost, now.UnixMilli()
	closeParts(m, now.UnixMilli())
	r.open = nil
	r.Tokens = r.Tokens.Add(tokens)
	t := r.Turn()
	t.Tokens = t.Tokens.Add(tokens)
	switch {
	case estimate != nil: // what it cost is not known, whatever the price
		r.Uncounted, r.Estimated = true, r.Estimated.Add(*estimate)
		t.Uncounted, t.Estimated = true, t.Estimated.Add(*estimate)
	case cost == nil:
		r.Unpriced, t.Unpriced = true, true
	default:
		r.Cost, t.Cost = r.Cost.Add(*cost), t.Cost.Add(*cost)
	}
}

// voidAttempt drops what a failed attempt has streamed: no call of it has run.
func (r *Run) voidAttempt(e event.Event, d event.ModelRetry) error {
	m, err := r.writing(e)
	if err != nil {
		return err
	}
	r.forget(m)
	now := e.Time.UnixMilli()
	m.Parts = append(m.Parts, message.Part{ID: e.Part, Type: message.PartRetry, Retry: &d.Retry, Start: now, End: now})
	return nil
}

// void marks the open message, if there is one: it will never be answered.
func (r *Run) void(now time.Time) {
	if m := r.open; m != nil {
		r.forget(m)
		m.Error, m.Time.Completed = message.Void, now.UnixMilli()
		r.open = nil
	}
}

// forget drops what was streamed of a message, its calls as well.
func (r *Run) forget(m *message.Message) {
	for _, c := range m.Calls() {
		delete(r.calls, c.CallID)
		r.decided(c.CallID)
	}
	m.Parts = slices.DeleteFunc(m.Parts, func(p message.Part) bool {
		return p.Type == message.PartText || p.Type == message.PartReasoning || p.Type == message.PartTool
	})
}

func (r *Run) openPart(e event.Event, t message.PartType) error {
	m, err := r.writing(e)
	if err != nil {
		return err
	}
	m.Parts = append(m.Parts, message.Part{ID: e.Part, Type: t, Start: e.Time.UnixMilli()})
	return nil
}

func (r *Run) closePart(e event.Event, t message.PartType, text string, metadata json.RawMessage) error {
	m, err := r.writing(e)
	if err != nil {
		return err
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.ID == e.Part && p.Type == t && p.End == 0 {
			p.Text, p.Metadata, p.End = text, metadata, e.Time.UnixMilli()
			return nil
		}
	}
	return fmt.Errorf("no open %s part %q", t, e.Part)
}

func (r *Run) finishStep(e event.Event, d event.StepFinish) error {
	if d.Calls != nil {
		r.Counted = r.Counted.Add(*d.Calls)
	}
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

// note adds a part that names the files to the newest message.
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

func (r *Run) message(id string) (*message.Message, error) {
	if m := r.messages[id]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("no message %q", id)
}
