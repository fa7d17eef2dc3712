package tool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// ServeOutside returns the server of one call that may use paths outside the
// workspace. A sandbox that other calls share must not show them: the call gets
// one of its own, which ends with it. A program that is not contained, and one
// that sees the paths anyway, is the same as for other calls.
func (p *Pool) ServeOutside(ctx context.Context, d *Definition, paths []message.OutsidePath, masked []string) (Server, error) {
	if boxed(d) {
		return p.boxOutside(ctx, d, paths)
	}
	held := p.Profiles[d.Name]
	if held == nil {
		return p.Serve(ctx, d)
	}
	more := slices.DeleteFunc(slices.Clone(paths), func(o message.OutsidePath) bool { return shown(o.Real, held.Workspace, held.Mounts) })
	if len(more) == 0 {
		return p.Serve(ctx, d)
	}
	seen := *held
	seen.Mounts, seen.Masked = slices.Clone(held.Mounts), slices.Concat(held.Masked, masked)
	for _, o := range more {
		at := slices.IndexFunc(seen.Mounts, func(m spec.Mount) bool { return m.At() == o.Real })
		if at < 0 {
			seen.Mounts = append(seen.Mounts, spec.Mount{Source: o.Real, Writable: o.Writable})
		} else {
			seen.Mounts[at].Writable = seen.Mounts[at].Writable || o.Writable
		}
	}
	if d.Spec.Source.Exec != nil {
		return &shownServer{&execServer{p.starterIn(d, &seen, true)}}, nil
	}
	shared, err := p.program(d)
	if err != nil {
		return nil, err
	}
	start, err := p.start(d)
	if err != nil {
		return nil, err
	}
	start.Profile, start.Fresh = &seen, true
	p.mu.Lock()
	functions := maps.Clone(shared.functions)
	p.mu.Unlock()
	one := &program{pool: p, name: start.Argv[0], tools: []string{d.Name}, functions: functions, launch: func(ctx context.Context) (host.Options, error) {
		if d.Spec.Source.Plugin != nil && p.Fence != nil {
			if err := p.Fence(ctx); err != nil {
				return host.Options{}, err
			}
		}
		return host.Options{Launch: p.Launcher.PluginRunner(start)}, nil
	}}
	return &shownServer{&freshServer{one, d}}, nil
}

// boxOutside is ServeOutside for a tool that is an image: a container of its own.
func (p *Pool) boxOutside(ctx context.Context, d *Definition, paths []message.OutsidePath) (Server, error) {
	more := slices.DeleteFunc(slices.Clone(paths), func(o message.OutsidePath) bool {
		return slices.ContainsFunc(d.Spec.Isolation.Mounts, func(m v1alpha1.Mount) bool { return below(o.Real, m.Path) })
	})
	if len(more) == 0 {
		return p.Serve(ctx, d)
	}
	one := *d
	one.Spec.Isolation.Fresh = true
	one.Spec.Isolation.Mounts = slices.Clone(d.Spec.Isolation.Mounts)
	for _, o := range more {
		m := v1alpha1.Mount{Path: o.Real, Access: v1alpha1.MountReadOnly}
		if o.Writable {
			m.Access = v1alpha1.MountReadWrite
		}
		at := slices.IndexFunc(one.Spec.Isolation.Mounts, func(m v1alpha1.Mount) bool { return m.Path == o.Real })
		switch {
		case at < 0:
			one.Spec.Isolation.Mounts = append(one.Spec.Isolation.Mounts, m)
		case o.Writable:
			one.Spec.Isolation.Mounts[at] = m
		}
	}
	if d.Spec.Source.Container.Protocol == v1alpha1.ProtocolExec {
		return &shownServer{&execServer{p.Boxes.starter(p, &one)}}, nil
	}
	shared, err := p.program(d)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	functions := maps.Clone(shared.functions)
	p.mu.Unlock()
	prog := &program{pool: p, name: imageName(d), image: true, tools: []string{d.Name}, functions: functions, launch: p.Boxes.launch(p, &one)}
	return &shownServer{&freshServer{prog, d}}, nil
}

// shownServer is a server with a sandbox for one call. That the sandbox cannot be
// built, because one of the paths has changed meanwhile, is a failure of the call.
type shownServer struct{ Server }

// Call implements Server.
func (s *shownServer) Call(ctx context.Context, req Request, progress func(string)) (Reply, error) {
	reply, err := s.Server.Call(ctx, req, progress)
	if started, ok := errors.AsType[*startError](err); ok && ctx.Err() == nil {
		return Reply{
			Output: fmt.Sprintf("not run: a sandbox that shows the paths outside the workspace could not be built: %v", started.err),
			Failed: true, Code: message.CodeTool,
		}, nil
	}
	return reply, err
}

// startError says that the program of a call could not be started.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }

func (e *startError) Unwrap() error { return e.err }
