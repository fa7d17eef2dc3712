package environment

import (
	"context"
	"net"
	"slices"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/coder/endpoint"
	"agentctl.dev/agentctl/runner/sandbox/egress"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// serveSandbox is the network of a sandbox: its tools reach what its profile lists. A coding
// agent of others reaches the server of its model, and nothing else.
func (h *Host) serveSandbox(ctx context.Context, l net.Listener, p *spec.Profile) {
	if found, ok := h.endpoints.Load(p.Group); ok && p.Group != "" {
		if err := found.(*endpoint.Endpoint).Serve(ctx, l); err != nil && ctx.Err() == nil { //nolint:forcetypeassert // what is stored is one
			h.report.warn(err.Error())
		}
		return
	}
	h.serve(ctx, l, p.Tools, p.Allow)
}

// serve answers requests for connections from inside an isolated tool, and records each.
func (h *Host) serve(ctx context.Context, l net.Listener, tools, allow []string) {
	proxy, err := egress.New(egress.Options{Tools: tools, Allow: allow, OnConnection: func(c event.EgressConnection) {
		if j := h.report.opened(); j != nil {
			_, _ = j.Append(event.Event{Call: calling(j, tools), Data: c}) // a journal that fails ends the run
		}
	}})
	if err == nil {
		err = proxy.Serve(ctx, l)
	}
	if err != nil && ctx.Err() == nil {
		h.report.warn(err.Error())
	}
}

// calling is the running call of the tools, where there is only one.
func calling(j Journal, tools []string) (id string) {
	j.See(func(v *view.Run) {
		var running []string
		m := v.Message()
		if m == nil {
			return
		}
		for _, c := range m.Calls() {
			if c.State == message.StateRunning && slices.Contains(tools, v.DeclaredAs(c.Tool)) {
				running = append(running, c.CallID)
			}
		}
		if len(running) == 1 {
			id = running[0]
		}
	})
	return id
}
