// Package plugin is the source of programs of this host that speak the tool protocol.
package plugin

import (
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/tool"
)

// Kind describes spec.source.plugin.
func Kind() tool.Kind {
	return tool.Kind{Name: "plugin", Facts: facts, Open: open}
}

func facts(s *v1alpha1.ToolSpec) (tool.Facts, error) {
	p := s.Source.Plugin
	return tool.Facts{Command: tool.Command(p.Command), Function: p.Tool, Describes: true, Supplies: true, Receives: true}, nil
}

func open(p *tool.Pool) tool.Source {
	return &tool.HostPlugins{Pool: p, Program: func(d *tool.Definition) (sandbox.Spec, error) {
		return sandbox.Spec{Argv: d.Command, Sha256: d.Spec.Source.Plugin.SHA256}, nil
	}}
}
