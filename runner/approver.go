package runner

import (
	"os"

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
	return s.answers.Approver(o), release
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
