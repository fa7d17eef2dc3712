package view

import (
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// summaryIntro comes before a summary, so that the model does not take it for
// something the user has just said.
const summaryIntro = "Summary of the conversation so far, which it replaces:\n\n"

// todosIntro comes before the todo list behind a summary.
const todosIntro = "\n\nThe todo list, as it is now:\n"

// History returns the conversation as it is sent to a model: without void
// messages and, after a compaction, the first prompt, the summary, the prompt of the
// newest turn, and what is kept word for word.
func (r *Run) History() []*message.Message {
	from, history := 0, []*message.Message(nil)
	if s := r.summary(); s != nil {
		from = max(1, r.tailOf(s)) // the first prompt is there once
		history = append(history, r.Messages[0], asked(s))
		if t := r.Turn(); t != nil && t.first > 0 && t.first < from {
			history = append(history, r.Messages[t.first])
		}
	}
	for _, m := range r.Messages[from:] {
		if !m.Summary && m.Error == "" && !m.Open() {
			history = append(history, m)
		}
	}
	return history
}

// asked is a summary as the model reads it.
func asked(s *message.Message) *message.Message {
	m := *s
	m.Role, m.Parts = message.RoleUser, nil
	todos := ""
	for _, p := range s.Parts {
		if p.Type == message.PartCompaction && len(p.Compaction.Todos) > 0 {
			todos = todosIntro + p.Compaction.Todos.Text()
		}
	}
	for _, p := range s.Parts {
		if p.Type == message.PartText {
			p.Text = summaryIntro + p.Text + todos
			m.Parts = append(m.Parts, p)
		}
	}
	return &m
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
		if p.Type == message.PartCompaction && p.Compaction.TailStart != "" {
			return slices.Index(r.Messages, r.messages[p.Compaction.TailStart])
		}
	}
	return slices.Index(r.Messages, s)
}

// prune marks results whose text is left out of the conversation from now on.
func (r *Run) prune(e event.Event, d event.ContextPrune) error {
	for _, p := range d.Calls {
		if c := r.calls[p.Call]; c == nil || c.Result == nil {
			return fmt.Errorf("no result of a call %q", p.Call)
		}
	}
	for _, p := range d.Calls {
		c := r.calls[p.Call]
		c.Compacted = e.Time.UnixMilli()
		if c.Result.Blob == "" {
			// The result belongs to the maker of the event.
			marked := *c.Result
			marked.Blob = p.Blob
			c.Result = &marked
		}
	}
	return nil
}

// compact completes the message of a summary.
func (r *Run) compact(e event.Event, d event.ContextCompaction) error {
	m, err := r.writing(e)
	if err != nil {
		return err
	}
	if !m.Summary {
		return fmt.Errorf("message %q is not a summary", m.ID)
	}
	if d.TailStart != "" && r.messages[d.TailStart] == nil {
		return fmt.Errorf("the summary leaves no message %q", d.TailStart)
	}
	r.recap(d.Summary)
	r.answer(m, d.Model, d.Tokens, d.Estimate, d.Cost, e.Time)
	m.Finish = message.FinishStop
	start, now := m.Time.Created, e.Time.UnixMilli()
	m.Parts = append(
		m.Parts,
		message.Part{ID: e.Part, Type: message.PartCompaction, Compaction: &d.Compaction, Start: start, End: now},
		message.Part{ID: e.Part + "-text", Type: message.PartText, Text: d.Summary, Synthetic: true, Start: start, End: now},
	)
	return nil
}
