package view

import (
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// summaryIntro stands before a summary, so that the model does not take it for
// something the user has just said.
const summaryIntro = "Summary of the conversation so far, which it replaces:\n\n"

// History returns the conversation as it is sent to a model: without void
// messages and, after a compaction, the first prompt, the summary, and what is
// kept word for word.
func (r *Run) History() []*message.Message {
	from, history := 0, []*message.Message(nil)
	if s := r.summary(); s != nil {
		from = r.tailOf(s)
		history = append(history, r.Messages[0], &message.Message{
			ID: s.ID, Role: message.RoleUser, Agent: s.Agent, Model: s.Model, Summary: true, Time: s.Time,
			Parts: []message.Part{{ID: s.ID, Type: message.PartText, Text: summaryIntro + s.Text(), Synthetic: true}},
		})
	}
	for _, m := range r.Messages[from:] {
		if !m.Summary && m.Error == "" && !m.Open() {
			history = append(history, m)
		}
	}
	return history
}

// summary returns the newest complete summary. One that says nothing stands for
// nothing.
func (r *Run) summary() *message.Message {
	for _, m := range slices.Backward(r.Messages) {
		if m.Summary && m.Error == "" && !m.Open() && m.Text() != "" {
			return m
		}
	}
	return nil
}

// tailOf returns the place of the first message that a summary left as it was.
func (r *Run) tailOf(s *message.Message) int {
	for _, p := range s.Parts {
		if p.Type != message.PartCompaction {
			continue
		}
		if i := slices.IndexFunc(r.Messages, func(m *message.Message) bool { return m.ID == p.Compaction.TailStart }); i >= 0 {
			return i
		}
	}
	return slices.Index(r.Messages, s)
}

// prune marks results whose text is left out of the conversation from now on.
func (r *Run) prune(e event.Event, d event.ContextPrune) error {
	for _, p := range d.Calls {
		c := r.calls[p.Call]
		if c == nil || c.Result == nil {
			return fmt.Errorf("no result of a call %q", p.Call)
		}
		c.Compacted = e.Time.UnixMilli()
		if c.Result.Blob == "" {
			// The result belongs to whoever made the event.
			marked := *c.Result
			marked.Blob = p.Blob
			c.Result = &marked
		}
	}
	return nil
}

// compact completes the message of a summary.
func (r *Run) compact(e event.Event, d event.ContextCompaction) error {
	m, err := r.message(e.Message)
	if err != nil {
		return err
	}
	if !m.Summary {
		return fmt.Errorf("message %q is no summary", m.ID)
	}
	r.answer(m, d.Model, d.Tokens, d.Cost, e.Time)
	now := e.Time.UnixMilli()
	m.Finish = message.FinishStop
	m.Parts = append(
		m.Parts,
		message.Part{ID: e.Part, Type: message.PartCompaction, Compaction: &d.Compaction, Start: m.Time.Created, End: now},
		message.Part{ID: e.Part, Type: message.PartText, Text: d.Summary, Synthetic: true, Start: m.Time.Created, End: now},
	)
	return nil
}
