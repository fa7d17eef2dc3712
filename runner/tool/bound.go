package tool

import (
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/plugins/host"
)

// bound is the binding of a call as its program is sent it. The /tmp of a sandbox is part
// of no binding: it is private, and a shell writes there what it needs for itself.
func (r *Registry) bound(d *Definition, b *message.Binding) *host.Binding {
	if b == nil {
		return nil
	}
	to := &host.Binding{Programs: b.Programs, Network: b.Network}
	if r.Profile != nil && r.Profile(d.Program()) != nil {
		to.Scratch = []string{"/tmp"}
	}
	for _, p := range b.Paths {
		to.Paths = append(to.Paths, host.BoundPath{Path: p.Path, Op: string(p.Op), Links: p.Links})
	}
	return to
}
