package runs

import (
	"context"
	"errors"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/inbox"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/statedir"
)

// MessageLimit bounds the text of a message to a run.
const MessageLimit = inbox.TextLimit

// ErrEnded is the cause of the error for a message to a run that has ended.
var ErrEnded = errors.New("it has ended")

// SendOptions are a message and its run. Ref and Text are required.
type SendOptions struct {
	// Ref is the run as View takes it.
	Ref string
	// State is the folder that holds runs; see statedir.Find.
	State string
	// Text of the message, at most MessageLimit bytes.
	Text string
	// By is the sender, for example "jane@pts/3".
	By string
}

// Sent is a message that a run will read.
type Sent struct {
	// ID of the message, as in the event message.received once it is read.
	ID  string `json:"id"`
	Run string `json:"run"`
	// State is Running: the model reads the message with its next request; or
	// Suspended or Interrupted: a resume reads it.
	State string `json:"state"`
}

// Send sends a message to a run while it is executed. The message is durable when Send
// returns, and the run reads it before its next request to the model; a run that would end
// with its final answer continues. It may still end otherwise before that, at a limit for
// example, and then warns how many messages it has not read.
//
//	the run                            Send returns
//	is executed, is suspended, was     the message, stored until it is read
//	killed
//	has ended, or is about to          a *reason.UsageError whose cause is ErrEnded
//	is not there, has not begun        a *reason.UsageError
func Send(_ context.Context, o SendOptions) (*Sent, error) {
	state, err := statedir.Find(o.State)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	m := message.Incoming{ID: newID("in", now), Text: o.Text, By: o.By, PostedAt: now.UnixMilli()}
	if err := inbox.Check(m); err != nil {
		return nil, reason.Usagef("the message cannot be sent: %w", err)
	}
	found, err := journal.FindRun(state, o.Ref)
	if err != nil {
		return nil, (&reason.UsageError{Err: err}).WithHint("agentctl get runs lists the runs")
	}
	s := &Sent{ID: m.ID, Run: found.ID, State: view.Running}
	last, err := journal.Last(found.Dir)
	if err != nil {
		return nil, reason.Usagef("run %s cannot be sent a message: %w", found.ID, err)
	}
	switch f, finished := last.Data.(event.RunFinished); {
	case finished && f.Phase != view.Suspended:
		return nil, tooLate(found.ID)
	case finished:
		s.State = Suspended
	case !journal.Held(found.Dir):
		s.State = Interrupted
	}
	err = inbox.New(found.ID, found.Dir).Put(m)
	if errors.Is(err, inbox.ErrClosed) {
		return nil, tooLate(found.ID)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func tooLate(run string) error {
	return reason.Usagef("run %s takes no messages: %w, or is about to", run, ErrEnded).WithHint("agentctl run starts another run")
}
