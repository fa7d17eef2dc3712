package execution

import (
	"context"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/loop"
)

// Sent is a message that was sent to a recorded run, and after how many steps.
type Sent struct {
	message.Incoming
	Steps int
}

// replayInbox is the inbox of a run that is recorded again: a message to the recorded run
// comes after the same step, or before the run would end.
type replayInbox struct {
	loop.Inbox
	view *view.Run
	left []Sent
}

// Take implements loop.Inbox.
func (r *replayInbox) Take(ctx context.Context) (due []message.Incoming) {
	for len(r.left) > 0 && r.left[0].Steps <= r.view.Steps {
		due = append(due, r.left[0].Incoming)
		r.left = r.left[1:]
	}
	return append(due, r.Inbox.Take(ctx)...)
}

// Close implements loop.Inbox.
func (r *replayInbox) Close() bool {
	if len(r.left) == 0 {
		return r.Inbox.Close()
	}
	r.left[0].Steps = 0 // this run needed fewer steps to come so far
	return false
}
