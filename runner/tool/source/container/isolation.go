package container

import (
	"context"
	"fmt"
	"sync"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/sandbox/container"
	"agentctl.dev/agentctl/runner/tool"
)

// isolation is what contains the programs of images: containerd.
type isolation struct {
	site tool.SiteOptions
	// connect opens the way to containerd, once.
	connect func() (*container.Runtime, error)

	mu sync.Mutex
	// connected reports whether connect has succeeded, so that Close does not connect.
	connected bool
}

func isolate(at *tool.Site) tool.Isolation {
	c := &isolation{site: at.Options()}
	c.connect = sync.OnceValues(func() (*container.Runtime, error) {
		r, err := container.Open(c.site.Containerd, c.site.State)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.connected = err == nil
		return r, err
	})
	return c
}

// Source implements tool.Isolation.
func (c *isolation) Source(p *tool.Pool) tool.Source {
	return &source{at: c, pool: p, run: p.Options(), held: map[string]*held{}}
}

// Require refuses a tool that demands a container on a host without containerd,
// and mounts that would show more than declared.
func (c *isolation) Require(ctx context.Context, d *tool.Definition) error {
	runtime, err := c.connect()
	if err != nil {
		return err
	}
	if err := c.check(d); err != nil {
		return err
	}
	return runtime.Require(ctx, d.Name)
}

func (c *isolation) check(d *tool.Definition) error {
	for _, m := range d.Spec.Isolation.Mounts {
		err := c.mountable(m.Path)
		if err != nil {
			return reason.New(reason.IsolationUnavailable, "tool %q: %w", d.Name, err).WithHint("check spec.isolation.mounts of the Tool")
		}
	}
	return nil
}

// mountable is stricter than for a sandbox: what containerd mounts is looked up
// again when it does, when a link may have been turned meanwhile, and of what it has
// mounted nothing can be hidden.
func (c *isolation) mountable(path string) error {
	target, err := tool.Mountable(path)
	if err != nil {
		return err
	}
	if target != path {
		return fmt.Errorf("mount %s: a link leads to it: name %s", path, target)
	}
	masked, err := tool.Place{Masked: c.site.Unseen}.Hidden(path, target)
	if err == nil && len(masked) > 0 {
		err = fmt.Errorf("mount %s: %s lies in it, which no tool may see", path, masked[0])
	}
	return err
}

// Close implements tool.Isolation.
func (c *isolation) Close() error {
	c.mu.Lock()
	connected := c.connected
	c.mu.Unlock()
	if !connected {
		return nil
	}
	runtime, err := c.connect()
	if err != nil {
		return err
	}
	return runtime.Close()
}
