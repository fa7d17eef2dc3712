// Package agent is the source of tools that start another agent. The runner answers their calls.
package agent

import (
	"context"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
)

// Kind describes spec.source.agent.
func Kind() tool.Kind {
	return tool.Kind{Name: "agent", Facts: func(s *v1alpha1.ToolSpec) (tool.Facts, error) {
		return tool.Facts{Agent: s.Source.Agent.Name, Host: true, KeepHead: true}, nil
	}, Open: func(*tool.Pool) tool.Source { return source{} }}
}

// source starts nothing: a call is a run in the process of the runner.
type source struct{}

// Start implements tool.Source.
func (source) Start(context.Context, *tool.Definition) {}

// Describe implements tool.Source.
func (source) Describe(_ context.Context, d *tool.Definition) ([]tool.Function, error) {
	return []tool.Function{{Name: d.Name, Description: d.Description, Parameters: d.Parameters}}, nil
}

// Serve implements tool.Source.
func (source) Serve(_ context.Context, d *tool.Definition, _ tool.Outside) (tool.Server, error) {
	return nil, reason.New(reason.Internal, "tool %q: no program serves an agent", d.Name)
}

// Close implements tool.Source.
func (source) Close() error { return nil }
