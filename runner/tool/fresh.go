package tool

import (
	"context"
)

// freshServer starts a plugin for each call and ends it afterwards.
type freshServer struct {
	program *program
	tool    *Definition
}

// Call implements Server.
func (s *freshServer) Call(ctx context.Context, req Request, progress func(string)) (Reply, error) {
	plugin, err := s.program.begin(ctx)
	if err != nil {
		return Reply{}, &startError{err}
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		_ = plugin.Close(ctx) // it is killed if need be
	}()
	if s.tool.foreign() {
		if err := s.program.pool.unchanged(s.tool, plugin.Tools()); err != nil {
			return Reply{}, err
		}
	}
	ready := make(chan struct{})
	close(ready)
	one := &pluginServer{program: s.program, run: &started{ready: ready, plugin: plugin}}
	return one.Call(ctx, req, progress)
}

var _ Server = (*freshServer)(nil)
