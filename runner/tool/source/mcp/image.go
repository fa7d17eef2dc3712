package mcp

import (
	"context"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/tool"
)

// packed is the Tool of a server in an image as one of spec.source.container, which is how
// images are contained.
func packed(d *tool.Definition) *tool.Definition {
	one, c := *d, d.Spec.Source.MCP.Container
	one.Spec.Source = v1alpha1.ToolSource{Container: &v1alpha1.ContainerSource{
		Image: c.Image, Command: c.Command, RuntimeClass: c.RuntimeClass, Protocol: v1alpha1.ProtocolExec,
	}}
	return &one
}

// blindfolded is a server in an image that is shown no files and reaches nothing.
func blindfolded(d *tool.Definition) *tool.Definition {
	one := packed(d)
	one.Spec.WorkspaceAccess, one.Spec.Isolation.Mounts = v1alpha1.AccessNone, nil
	one.Spec.Network = v1alpha1.Network{Mode: v1alpha1.NetworkNone}
	return one
}

// ownImage is a server in an image for a call that may use paths that the shared one does
// not see.
func (s *source) ownImage(d *tool.Definition, beyond tool.Outside) (*tool.Definition, bool) {
	if !d.Contained() || len(beyond.Paths) == 0 {
		return nil, false
	}
	images, err := s.pool.Images()
	if err != nil {
		return nil, false // the shared server reports it
	}
	one := images.More(packed(d), beyond)
	return one, one != nil
}

// image starts a server of an image, contained as the definition says.
func (s *source) image(d, contained *tool.Definition) dialer {
	name := d.Program()
	images, err := s.pool.Images()
	return s.speaking(name, func(ctx context.Context, streams tool.Streams) (tool.Running, error) {
		if err != nil {
			return nil, err
		}
		p, err := images.Speak(ctx, contained, streams)
		if err != nil {
			return nil, tool.WithHint(fmt.Errorf("tool %q: start its MCP server: %w", name, err), "check spec.source.mcp.container of the Tool")
		}
		return p, nil
	})
}

// Begin removes the containers that killed runs have left.
func (s *source) Begin(ctx context.Context, tools []tool.Definition) {
	if !slices.ContainsFunc(tools, func(d tool.Definition) bool { return d.Contained() }) {
		return
	}
	if images, err := s.pool.Images(); err == nil {
		images.Begin(ctx, nil)
	}
}
