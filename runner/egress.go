package runner

import (
	"context"
	"net"
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/sandbox/egress"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// serveSandbox is the network of a sandbox: its tools reach what its profile lists.
func (s *session) serveSandbox(ctx context.Context, l net.Listener, p *spec.Profile) {
	s.serve(ctx, l, s.sharing(p), p.Allow)
}

// serve answers those who ask for connections from inside a contained tool, and
// writes down each.
func (s *session) serve(ctx context.Context, l net.Listener, tools, allow []string) {
	proxy, err := egress.New(egress.Options{Tools: tools, Allow: allow, OnConnection: func(c event.EgressConnection) {
		_, _ = s.recorder.Append(event.Event{Call: s.calling(tools), Data: c}) // a journal that fails says so itself
	}})
	if err == nil {
		err = proxy.Serve(ctx, l)
	}
	if err != nil && ctx.Err() == nil {
		_ = s.recorder.tell(event.Warning{Message: err.Error()})
	}
}

// calling is the call of some tools that runs, where there is only one.
func (s *session) calling(tools []string) (id string) {
	s.recorder.see(func(v *view.Run) {
		var running []string
		m := v.Message()
		if m == nil {
			return
		}
		for _, c := range m.Calls() {
			if c.State == message.StateRunning && slices.Contains(tools, c.Tool) {
				running = append(running, c.CallID)
			}
		}
		if len(running) == 1 {
			id = running[0]
		}
	})
	return id
}
