package runner

import (
	"context"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/container"
	"agentctl.dev/agentctl/runner/tool"
)

// shipped are the tools of our own, foreign all others.
func shipped(tools []tool.Definition) []tool.Definition { return pick(tools, true) }
func foreign(tools []tool.Definition) []tool.Definition { return pick(tools, false) }

func pick(tools []tool.Definition, ours bool) []tool.Definition {
	return slices.DeleteFunc(slices.Clone(tools), func(d tool.Definition) bool { return (d.Spec.Source.Builtin != nil) != ours })
}

// wantsContainer says whether a tool runs in a container or not at all.
func wantsContainer(d *tool.Definition) bool {
	return d.Spec.Source.Container != nil || d.Spec.Isolation.Minimum == v1alpha1.IsolationContainer
}

// containable refuses the run before anything has run when a tool cannot be
// contained as it demands.
func (s *session) containable(ctx context.Context) error {
	for i := range s.tools {
		if d := &s.tools[i]; wantsContainer(d) {
			if err := s.boxes(); err != nil {
				return err
			}
			if err := s.pool.Boxes.Check(d); err != nil {
				return err
			}
			if err := s.pool.Boxes.Runtime.Require(ctx, d.Name); err != nil {
				return err
			}
		}
	}
	return contain(s.launcher, s.tools)
}

// boxes makes what starts containers, for a run whose tools need it.
func (s *session) boxes() error {
	if s.pool.Boxes != nil || !slices.ContainsFunc(s.tools, func(d tool.Definition) bool { return wantsContainer(&d) }) {
		return nil
	}
	runtime, err := container.Open(s.opts.Containerd, s.opts.State)
	if err != nil {
		return err
	}
	s.pool.Boxes = &tool.Boxes{Runtime: runtime, Run: s.id, Unseen: s.unseen(), Egress: s.serve}
	return nil
}
