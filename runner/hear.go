package runner

import (
	"fmt"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/inbox"
)

// hears opens the inbox of the run.
func (s *session) hears() error {
	refusals := &refusals{one: "a message", many: "messages", tell: func(text string) {
		_ = s.recorder.tell(event.Warning{Message: text}) // a journal that fails says so itself
	}}
	s.inbox = inbox.New(s.id, s.dir)
	s.inbox.Refused = refusals.add
	return s.inbox.Open()
}

// unheard ends the taking of messages, and tells of those that were left and that
// the run ends without having read.
func (s *session) unheard() error {
	if s.recorder.hasLeft() {
		return nil
	}
	n := s.inbox.Shut()
	if n == 0 {
		return nil
	}
	return s.recorder.tell(event.Warning{Message: fmt.Sprintf("%d messages to the run were not read: it ended before", n)})
}
