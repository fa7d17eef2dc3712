// Package agent describes tools that start another agent. This version admits and resolves them, and does not start them.
package agent

import (
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
)

// Kind describes spec.source.agent.
func Kind() tool.Kind {
	return tool.Kind{Name: "agent", Facts: func(s *v1alpha1.ToolSpec) (tool.Facts, error) {
		return tool.Facts{Agent: s.Source.Agent.Name}, nil
	}}
}
