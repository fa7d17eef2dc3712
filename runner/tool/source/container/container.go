// Package container is the source of tools that are images: their programs run in containers of containerd.
package container

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox/container"
	"agentctl.dev/agentctl/runner/tool"
)

// Kind describes spec.source.container.
func Kind() tool.Kind {
	return tool.Kind{Name: "container", Level: v1alpha1.IsolationContainer, Facts: facts, Open: open}
}

func facts(s *v1alpha1.ToolSpec) (tool.Facts, error) {
	c := s.Source.Container
	// Where containerd is not root's, its sockets are on the disk of the run's files.
	f := tool.Facts{Function: c.Tool, Describes: !perCall(c), WritesDisk: true}
	if perCall(c) {
		f.Function = ""
	}
	return f, nil
}

// perCall reports whether a program of the image is started for each call.
func perCall(c *v1alpha1.ContainerSource) bool { return c.Protocol == v1alpha1.ProtocolExec }

// source starts the programs of images.
type source struct {
	pool *tool.Pool
	// connect opens the way to containerd, once.
	connect func() (*container.Runtime, error)

	begun sync.WaitGroup
	mu    sync.Mutex
	held  map[string]*held
	// connected reports whether connect has succeeded, so that Close does not connect.
	connected bool
}

func open(p *tool.Pool) tool.Source {
	s := &source{pool: p, held: map[string]*held{}}
	s.connect = sync.OnceValues(func() (*container.Runtime, error) {
		r, err := container.Open(p.Containerd, p.State)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.connected = err == nil
		return r, err
	})
	return s
}

// Require refuses a tool that demands a container on a host without containerd,
// and mounts that would show more than declared.
func (s *source) Require(ctx context.Context, d *tool.Definition) error {
	runtime, err := s.connect()
	if err != nil {
		return err
	}
	if err := s.check(d); err != nil {
		return err
	}
	return runtime.Require(ctx, d.Name)
}

func (s *source) check(d *tool.Definition) error {
	for _, m := range d.Spec.Isolation.Mounts {
		err := s.mountable(m.Path)
		if err != nil {
			return reason.New(reason.IsolationUnavailable, "tool %q: %w", d.Name, err).WithHint("check spec.isolation.mounts of the Tool")
		}
	}
	return nil
}

// mountable is stricter than for a sandbox: what containerd mounts is looked up
// again when it does, when a link may have been turned meanwhile, and of what it has
// mounted nothing can be hidden.
func (s *source) mountable(path string) error {
	target, err := tool.Mountable(path)
	if err != nil {
		return err
	}
	if target != path {
		return fmt.Errorf("mount %s: a link leads to it: name %s", path, target)
	}
	masked, err := tool.Place{Masked: s.pool.Unseen}.Hidden(path, target)
	if err == nil && len(masked) > 0 {
		err = fmt.Errorf("mount %s: %s lies in it, which no tool may see", path, masked[0])
	}
	return err
}

// Start implements tool.Source: a program that speaks the tool protocol stays.
func (s *source) Start(ctx context.Context, d *tool.Definition) {
	if !perCall(d.Spec.Source.Container) && !d.Spec.Isolation.Fresh {
		s.process(d).Start(ctx)
	}
}

// Begin prepares the containers of programs that are started by call, and
// removes what killed runs have left. Close waits for it.
func (s *source) Begin(ctx context.Context, tools []tool.Definition) {
	runtime, err := s.connect()
	if err != nil {
		return // it is reported to the call that needs it
	}
	s.begun.Go(func() {
		_, _ = runtime.Sweep(ctx) // what cannot be removed now does not disturb
	})
	for i := range tools {
		if d := &tools[i]; perCall(d.Spec.Source.Container) && !d.Spec.Isolation.Fresh {
			s.begun.Go(func() {
				_, _ = s.hold(ctx, d) // an error is reported to the call that needs it
			})
		}
	}
}

// Describe implements tool.Source: it asks an image what its tools take, in a container of
// its own that is shown nothing of the run, because nothing has been decided about it yet.
func (s *source) Describe(ctx context.Context, d *tool.Definition) ([]tool.Function, error) {
	c := d.Spec.Source.Container
	if perCall(c) {
		return []tool.Function{{Name: d.Name, Description: d.Description, Parameters: d.Parameters}}, nil
	}
	program := s.program(d)
	program.Launch = func(context.Context) (host.Options, error) {
		return s.options(container.Spec{Run: s.pool.Run, Tool: d.Name, Image: c.Image, Argv: c.Command})
	}
	return program.Functions(ctx, d)
}

// Serve implements tool.Source. A call that may use paths outside the workspace gets a
// container of its own, unless mounts show them anyway.
func (s *source) Serve(ctx context.Context, d *tool.Definition, beyond tool.Outside) (tool.Server, error) {
	more := slices.DeleteFunc(slices.Clone(beyond.Paths), func(o message.OutsidePath) bool {
		return slices.ContainsFunc(d.Spec.Isolation.Mounts, func(m v1alpha1.Mount) bool { return tool.Below(o.Real, m.Path) })
	})
	one := showing(d, more)
	switch {
	case perCall(d.Spec.Source.Container) && one != nil:
		return tool.Once(&tool.PerCall{Start: s.starter(one)}), nil
	case perCall(d.Spec.Source.Container):
		return &tool.PerCall{Start: s.starter(d)}, nil
	case one != nil:
		return s.process(d).ServeOnce(d, s.program(one)), nil
	}
	return s.process(d).Serve(ctx, d)
}

// showing is a tool with further mounts, in a container for one call; nil where there is
// nothing more to show.
func showing(d *tool.Definition, more []message.OutsidePath) *tool.Definition {
	if len(more) == 0 {
		return nil
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
	return &one
}

// process is the process of a tool that stays. What it may reach and whose secrets it has
// are the tool's own, so no other tool shares it.
func (s *source) process(d *tool.Definition) *tool.Process {
	return s.pool.Process("container\x00"+d.Name, d, s.program(d))
}

func (s *source) program(d *tool.Definition) tool.Program {
	c := d.Spec.Source.Container
	return tool.Program{
		Name: strings.TrimSpace(c.Image + " " + strings.Join(c.Command, " ")),
		Hint: func() string {
			return "see that the program of the image serves as a plugin; one that is started for each call has spec.source.container.protocol: Exec"
		},
		Launch: func(ctx context.Context) (host.Options, error) {
			spec, err := s.spec(ctx, d)
			if err != nil {
				return host.Options{}, err
			}
			return s.options(spec)
		},
	}
}

func (s *source) options(spec container.Spec) (host.Options, error) {
	runtime, err := s.connect()
	if err != nil {
		return host.Options{}, err
	}
	dir, err := runtime.SocketDir()
	return host.Options{Launch: runtime.PluginRunner(spec), TempDir: dir}, err
}

// spec is the container of a tool.
func (s *source) spec(ctx context.Context, d *tool.Definition) (container.Spec, error) {
	if err := s.check(d); err != nil {
		return container.Spec{}, err
	}
	src, l := d.Spec.Source.Container, d.Spec.Limits
	c := container.Spec{
		Run: s.pool.Run, Tool: d.Name, Image: src.Image, Argv: src.Command, Env: s.pool.Env[d.Name], Access: d.Spec.WorkspaceAccess,
		Mounts: d.Spec.Isolation.Mounts, Network: d.Spec.Network.Mode, RuntimeClass: src.RuntimeClass, Limits: container.Limits{Pids: l.Pids},
	}
	if l.Memory != nil {
		c.Limits.Memory = l.Memory.Value()
	}
	if l.CPU != nil {
		c.Limits.CPU = l.CPU.MilliValue()
	}
	if c.Network == v1alpha1.NetworkProxy && s.pool.Egress != nil {
		c.Egress = func(ctx context.Context, l net.Listener) {
			s.pool.Egress(ctx, l, []string{d.Name}, d.Spec.Network.Allow)
		}
	}
	if c.Access == v1alpha1.AccessNone {
		return c, nil
	}
	c.Workspace = s.pool.Dir
	var err error
	c.ReadOnly, c.Masked, err = s.pool.Guard(ctx)
	c.Masked = append(tool.Within(s.pool.Unseen, s.pool.Dir), c.Masked...)
	return c, err
}

const startHint = "check spec.source.container of the Tool"

// starter starts a program of an image per call: in a container that is held
// for the run, or in one of its own.
func (s *source) starter(d *tool.Definition) tool.Starter {
	return func(ctx context.Context, req tool.Request, env []string, out, errs io.Writer) (tool.Running, error) {
		in := bytes.NewReader(req.Args)
		if d.Spec.Isolation.Fresh {
			spec, err := s.spec(ctx, d)
			if err != nil {
				return nil, err
			}
			runtime, err := s.connect()
			if err != nil {
				return nil, err
			}
			spec.Env = append(slices.Clone(spec.Env), env...)
			spec.Stdin, spec.Stdout, spec.Stderr = in, out, errs
			return running(runtime.Start(ctx, spec))
		}
		held, err := s.hold(ctx, d)
		if err != nil {
			return nil, tool.WithHint(err, startHint)
		}
		return running(held.Start(ctx, container.Exec{Env: env, Stdin: in, Stdout: out, Stderr: errs}))
	}
}

// held is the container of a tool that stays for the run.
type held struct {
	mu        sync.Mutex
	container *container.Held
}

// hold returns the container that is kept for a tool. It creates the container
// if there is none or it has ended.
func (s *source) hold(ctx context.Context, d *tool.Definition) (*container.Held, error) {
	s.mu.Lock()
	at := s.held[d.Name]
	if at == nil {
		at = &held{}
		s.held[d.Name] = at
	}
	s.mu.Unlock()
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.container != nil {
		select {
		case <-at.container.Done():
		default:
			return at.container, nil
		}
	}
	runtime, err := s.connect()
	if err != nil {
		return nil, err
	}
	spec, err := s.spec(ctx, d)
	if err == nil {
		at.container, err = runtime.Hold(ctx, spec)
	}
	return at.container, err
}

// Close implements tool.Source. What was begun has ended with its context.
func (s *source) Close() error {
	s.begun.Wait()
	s.mu.Lock()
	connected := s.connected
	s.mu.Unlock()
	if !connected {
		return nil
	}
	runtime, err := s.connect()
	if err != nil {
		return err
	}
	return runtime.Close()
}

// process is a program in a container that runs.
type process struct{ *container.Process }

func running(p *container.Process, err error) (tool.Running, error) {
	if err != nil {
		return nil, tool.WithHint(err, startHint)
	}
	return process{p}, nil
}

// End implements tool.Running.
func (p process) End() tool.Ending {
	info := p.Wait()
	return tool.Ending{Code: info.Code, Signal: info.Signal, Detail: info.Detail}
}
