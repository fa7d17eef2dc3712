package runner

import (
	"context"
	"slices"

	"agentctl.dev/agentctl/runner/tool"
)

// shipped are the tools of our own, foreign all others.
func shipped(tools []tool.Definition) []tool.Definition { return pick(tools, true) }
func foreign(tools []tool.Definition) []tool.Definition { return pick(tools, false) }

func pick(tools []tool.Definition, ours bool) []tool.Definition {
	return slices.DeleteFunc(slices.Clone(tools), func(d tool.Definition) bool { return (d.Shipped != "") != ours })
}

// containable refuses the run before anything has run when a tool cannot be
// contained as it demands.
func (s *session) containable(ctx context.Context) error {
	s.pool.Containerd, s.pool.State, s.pool.Run = s.opts.Containerd, s.opts.State, s.id
	s.pool.Unseen, s.pool.Egress = s.unseen(), s.serve
	return s.pool.Require(ctx, s.tools)
}
