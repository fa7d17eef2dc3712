package execution

import (
	"fmt"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/runner/inbox"
)

// openInbox opens the inbox of a run.
func openInbox(run, dir string, r *Recorder) (*inbox.Inbox, error) {
	refusals := &refusals{one: "a message", many: "messages", warn: func(text string) {
		_ = r.Record(event.Warning{Message: text}) // a journal that fails ends the run
	}}
	in := inbox.New(run, dir)
	in.Refused = refusals.add
	return in, in.Open()
}

// warnUnread closes the inbox, and records that messages were not read.
func (x *Execution) warnUnread() error {
	if x.Recorder.hasLeft() {
		return nil
	}
	n := x.inbox.Shut()
	if n == 0 {
		return nil
	}
	return x.Recorder.Record(event.Warning{Message: fmt.Sprintf("%d messages to the run were not read: it ended before", n)})
}
