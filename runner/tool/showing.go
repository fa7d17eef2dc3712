package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// Showing returns the profile of a sandbox with the additional paths that one
// of a tool's calls may use; nil where that call needs no other sandbox than
// the rest: the program is not contained, or sees the paths anyway.
func (p *Pool) Showing(d *Definition, beyond Outside) *spec.Profile {
	held := p.Profile(d.Program())
	if held == nil {
		return nil
	}
	more := slices.DeleteFunc(slices.Clone(beyond.Paths), func(o message.OutsidePath) bool { return shown(o.Real, held.Workspace, held.Mounts) })
	if len(more) == 0 {
		return nil
	}
	seen := *held
	seen.Mounts, seen.Masked = slices.Clone(held.Mounts), slices.Concat(held.Masked, beyond.Masked)
	for _, o := range more {
		at := slices.IndexFunc(seen.Mounts, func(m spec.Mount) bool { return m.At() == o.Real })
		if at < 0 {
			seen.Mounts = append(seen.Mounts, spec.Mount{Source: o.Real, Writable: o.Writable})
		} else {
			seen.Mounts[at].Writable = seen.Mounts[at].Writable || o.Writable
		}
	}
	return &seen
}

// Once is a server that is made for one call, with a sandbox that shows more than the
// shared one. That it cannot be built is a failure of the call.
func Once(s Server) Server { return &shownServer{s} }

// shownServer is a server with a sandbox for one call. That the sandbox cannot be
// built, because one of the paths has changed meanwhile, is a failure of the call.
type shownServer struct{ Server }

// Call implements Server.
func (s *shownServer) Call(ctx context.Context, req host.CallRequest, progress func(string)) (Reply, error) {
	reply, err := s.Server.Call(ctx, req, progress)
	if started, ok := errors.AsType[*startError](err); ok && ctx.Err() == nil {
		return Reply{
			Output: fmt.Sprintf("not run: a sandbox that shows the paths outside the workspace could not be built: %v", started.err),
			Failed: true, Code: message.CodeTool,
		}, nil
	}
	return reply, err
}

// NotStarted is the error of a call whose server could not be started.
func NotStarted(err error) error { return &startError{err} }

// startError is the error of a call whose program could not be started.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }

func (e *startError) Unwrap() error { return e.err }
