package view

import (
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// revert is what a person has taken back, for the undoing.
type revert struct {
	to         string
	messages   []*message.Message
	remembered []message.Grant
	todos      message.Todos
	files      string
}

// revert takes the run back to a message, or undoes that.
func (r *Run) revert(d event.RunReverted) error {
	if d.Undo {
		last := len(r.reverts) - 1
		if last < 0 || r.reverts[last].to != d.To {
			return fmt.Errorf("no revert to message %q is to be undone", d.To)
		}
		was := r.reverts[last]
		for _, m := range was.messages {
			m.Error = ""
		}
		r.Remembered, r.Todos, r.FilesState, r.FilesUnknown, r.reverts = was.remembered, was.todos, was.files, false, r.reverts[:last]
		return nil
	}
	at := slices.IndexFunc(r.Messages, func(m *message.Message) bool { return m.ID == d.To })
	if at < 0 {
		return fmt.Errorf("no message %q", d.To)
	}
	was := revert{to: d.To, remembered: r.Remembered, todos: r.Todos, files: r.FilesState}
	for _, m := range r.Messages[at:] {
		if m.Error == "" {
			m.Error = message.Reverted
			was.messages = append(was.messages, m)
		}
	}
	r.reverts = append(r.reverts, was)
	// What was allowed for always may have been allowed in what is taken back.
	r.Remembered, r.Todos, r.FilesState, r.FilesUnknown = nil, r.todosBefore(at), d.Files, false
	return nil
}

// todosBefore is the todo list before the message at a place.
func (r *Run) todosBefore(at int) (list message.Todos) {
	for _, m := range r.Messages[:at] {
		for _, c := range m.Calls() {
			if c.Result != nil && c.Result.Todos != nil {
				list = c.Result.Todos
			}
		}
	}
	return list
}

// Undoable is the message to which the newest revert was that can be undone, and the state of
// the files before it; ok is false where there is none.
func (r *Run) Undoable() (to, files string, ok bool) {
	if len(r.reverts) == 0 {
		return "", "", false
	}
	last := r.reverts[len(r.reverts)-1]
	return last.to, last.files, true
}
