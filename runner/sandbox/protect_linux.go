package sandbox

import (
	"context"
	"errors"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// protection is one call of Protect.
type protection struct{ readOnly, masked []string }

// Protect makes paths read-only or unreadable in every sandbox, existing and
// future. It is for paths that did not exist when a sandbox was built, because
// the workspace is copied during the first model request. Call it before
// untrusted programs run in those sandboxes. A path that does not exist, or is
// not visible in a sandbox, is left out there. Any other failure is an error,
// and that sandbox must not be used.
func (l *Launcher) Protect(ctx context.Context, readOnly, masked []string) error {
	p := protection{readOnly, masked}
	l.mu.Lock()
	l.protected = append(l.protected, p)
	var rs []*instance
	for _, r := range l.instances {
		rs = append(rs, r)
	}
	l.mu.Unlock()
	for _, r := range rs {
		select {
		case <-r.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if r.err != nil {
			continue // nothing runs there
		}
		if err := r.protect(ctx, p); err != nil && !errors.Is(err, errGone) {
			return reason.New(reason.IsolationUnavailable, "protect files in the sandbox: %w", err)
		}
	}
	return nil
}

// protectAll is Protect for a sandbox that has just been built.
func (r *instance) protectAll(ctx context.Context) error {
	r.launcher.mu.Lock()
	ps := append([]protection{{r.profile.ReadOnly, r.profile.Masked}}, r.launcher.protected...)
	r.launcher.mu.Unlock()
	for _, p := range ps {
		if err := r.protect(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// maxProtect bounds the bytes of paths in one request, and so in its answer.
const maxProtect = 24 << 10

func (r *instance) protect(ctx context.Context, p protection) error {
	var m spec.Request
	size := 0
	flush := func() error {
		if size == 0 {
			return nil
		}
		m.Op = spec.OpProtect
		_, err := r.ask(ctx, &m, nil, nil)
		m, size = spec.Request{}, 0
		return err
	}
	add := func(list *[]string, path string) error {
		if size += len(path) + 8; size > maxProtect {
			if err := flush(); err != nil {
				return err
			}
			size = len(path) + 8
		}
		*list = append(*list, path)
		return nil
	}
	for _, path := range p.readOnly {
		if err := add(&m.ReadOnly, path); err != nil {
			return err
		}
	}
	for _, path := range p.masked {
		if err := add(&m.Masked, path); err != nil {
			return err
		}
	}
	return flush()
}
