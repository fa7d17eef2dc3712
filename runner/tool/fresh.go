package tool

import (
	"context"

	"agentctl.dev/agentctl/plugins/host"
)

// freshServer starts a plugin for each call and ends it afterwards.
type freshServer struct {
	process *Process
	tool    *Definition
}

// Call implements Server.
func (s *freshServer) Call(ctx context.Context, req host.CallRequest, progress func(string)) (Reply, error) {
	plugin, err := s.process.begin(ctx)
	if err != nil {
		return Reply{}, &startError{s.process.explained(err)}
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		_ = plugin.Close(ctx) // it is killed if need be
	}()
	if s.tool.Shipped == "" {
		if err := s.process.pool.unchanged(s.tool, functions(plugin.Tools())); err != nil {
			return Reply{}, err
		}
	}
	ready := make(chan struct{})
	close(ready)
	one := &pluginServer{process: s.process, run: &started{ready: ready, plugin: plugin}}
	return one.Call(ctx, req, progress)
}

var _ Server = (*freshServer)(nil)
