package view

import (
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// NewestChild names the newest run that a call has started, in place of its id.
const NewestChild = "last"

// Children are the ended runs that calls of this run have started, in the order of the
// calls.
func (r *Run) Children() (all []*message.ChildRun) {
	for _, m := range r.Messages {
		for _, c := range m.Calls() {
			if c.Result != nil && c.Result.Child != nil {
				all = append(all, c.Result.Child)
			}
		}
	}
	return all
}

// Copy returns a run below this one that has worked on a copy of its files, by its name, as
// the newest of an agent, or as NewestChild; nil if there is none. A call of a coding agent
// of others is one, too.
func (r *Run) Copy(name string) (found *message.ChildRun) {
	name = strings.TrimPrefix(name, "run/")
	for _, m := range r.Messages {
		for _, call := range m.Calls() {
			if call.Result == nil {
				continue
			}
			for _, c := range []*message.ChildRun{call.Result.Child, call.Result.Coding.InCopy(r.ID, call.CallID)} {
				if c != nil && c.Changes != nil && (c.Run == name || c.Agent == name || name == NewestChild) {
					found = c
				}
			}
		}
	}
	return found
}

// Coding returns what a coding agent of others has done in a call; nil if there is none.
func (r *Run) Coding(call string) *message.Coding {
	if p := r.Call(call); p != nil && p.Result != nil {
		return p.Result.Coding
	}
	return nil
}
