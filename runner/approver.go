package runner

import (
	"context"
	"os"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/approval"
)

// approver answers the run's questions as the command line and the agent
// declare. Release lets go of the terminal.
func (s *session) approver() (a approval.Approver, release func()) {
	declared := s.Agent.Spec.Approvals
	o := approval.Options{OnAsk: declared.OnAsk, Timeout: declared.Timeout.Duration}
	release = func() {}
	if t := s.opts.Terminal; t != nil {
		if o.Terminal = terminal(t); o.Terminal != nil {
			release = o.Terminal.Close
		}
	}
	a = s.answers.Approver(o)
	if o.Terminal != nil {
		a = inTurn{a, s.recorder}
	}
	return a, release
}

// inTurn lets a watcher show what led to a question before it is asked: both
// may write to one terminal.
type inTurn struct {
	approval.Approver
	recorder *recorder
}

// Ask implements loop.Approver.
func (a inTurn) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	a.recorder.shown(ctx)
	return a.Approver.Ask(ctx, q)
}

// terminal asks on the streams of the process where they are a terminal.
func terminal(t *Terminal) *approval.Terminal {
	in, file := t.In.(*os.File)
	out, files := t.Out.(*os.File)
	if file && files {
		return approval.Stdio(in, out)
	}
	return approval.NewTerminal(t.In, t.Out, nil)
}
