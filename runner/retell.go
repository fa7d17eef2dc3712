package runner

import (
	"context"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/cassette"
	"agentctl.dev/agentctl/runner/loop"
)

// retold is a message that was sent to a recorded run, and behind how many steps.
type retold struct {
	message.Incoming
	steps int
}

// messagesOf are the messages of a recording.
func messagesOf(c *cassette.Cassette) (all []retold) {
	steps := 0
	for _, e := range c.Life() {
		switch d := e.Data.(type) {
		case event.StepStart:
			steps = d.Step
		case event.MessageReceived:
			all = append(all, retold{d.Incoming, steps})
		}
	}
	return all
}

// retelling is the inbox of a run that is recorded anew: what was sent to the
// recorded one comes behind the same step, or before the run would end.
type retelling struct {
	loop.Inbox
	view *view.Run
	left []retold
}

// hearing is where the loop hears what people say.
func (s *session) hearing() loop.Inbox {
	if len(s.opts.retold) == 0 {
		return s.inbox
	}
	return &retelling{s.inbox, s.view, s.opts.retold}
}

// Take implements loop.Inbox.
func (r *retelling) Take(ctx context.Context) (due []message.Incoming) {
	for len(r.left) > 0 && r.left[0].steps <= r.view.Steps {
		due = append(due, r.left[0].Incoming)
		r.left = r.left[1:]
	}
	return append(due, r.Inbox.Take(ctx)...)
}

// Close implements loop.Inbox.
func (r *retelling) Close() bool {
	if len(r.left) == 0 {
		return r.Inbox.Close()
	}
	r.left[0].steps = 0 // this run needed fewer steps to come so far
	return false
}
