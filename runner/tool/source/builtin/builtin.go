// Package builtin is the source of the tools that agentctl ships: all are served by one program, agentctl-tools.
package builtin

import (
	"context"
	"fmt"
	"sync"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/builtin"
)

// Kind describes spec.source.builtin.
func Kind() tool.Kind {
	return tool.Kind{Name: "builtin", Facts: facts, Open: open}
}

func facts(s *v1alpha1.ToolSpec) (tool.Facts, error) {
	name := s.Source.Builtin.Name
	f := tool.Facts{Shipped: name, Function: name, Together: true, Receives: name == "bash"}
	b, ok := builtin.Lookup(name)
	if !ok {
		return f, fmt.Errorf("no shipped tool is named %q", name)
	}
	f.KeepHead, f.FreeText, f.Search, f.Creates, f.Host, f.URL = b.KeepHead, b.FreeText, b.Search, b.Creates, b.Host, b.URL
	if builtin.Codes(name) {
		f.Coding = builtin.Coding(&s.Source)
	}
	if u := builtin.Server(s); u != nil {
		f.Server = u.String()
	}
	return f, nil
}

// source starts the shipped program. The program does nothing before its first
// call.
type source struct {
	tool.HostPlugins
	// find returns where the program is, looked up once: a call asks for it.
	find func() (string, error)
}

func open(p *tool.Pool) tool.Source {
	s := &source{find: sync.OnceValues(func() (string, error) { return sandbox.FindProgram(builtin.Program) })}
	s.HostPlugins = tool.HostPlugins{Pool: p, Program: func(*tool.Definition) (sandbox.Spec, error) {
		path, err := s.find()
		return sandbox.Spec{Argv: []string{path}, Tidy: true, Dir: "/"}, err
	}}
	return s
}

// Describe implements tool.Source from what is compiled in.
func (s *source) Describe(_ context.Context, d *tool.Definition) ([]tool.Function, error) {
	if _, err := s.find(); err != nil {
		return nil, reason.New(reason.ToolError, "tool %q: %w", d.Name, err)
	}
	b, _ := builtin.Lookup(d.Shipped) // the definition was made of it
	return []tool.Function{{Name: b.Name, Description: b.Description, Parameters: b.Parameters}}, nil
}
