package environment

import (
	"context"
	"slices"

	"agentctl.dev/agentctl/runner/tool"
)

// shipped are the tools that agentctl brings along, foreign all others.
func shipped(tools []tool.Definition) []tool.Definition { return pick(tools, true) }
func foreign(tools []tool.Definition) []tool.Definition { return pick(tools, false) }

func pick(tools []tool.Definition, ours bool) []tool.Definition {
	return slices.DeleteFunc(slices.Clone(tools), func(d tool.Definition) bool { return (d.Shipped != "") != ours })
}

// require refuses the run before anything has run when a tool cannot be isolated as it
// demands.
func (e *Environment) require(ctx context.Context) error {
	pool := e.host.pool
	pool.Containerd, pool.State, pool.Run = e.host.Containerd, e.host.State, e.Run
	pool.Unseen, pool.Egress = e.host.hidden(), e.host.serve
	return pool.Require(ctx, e.Tools)
}
