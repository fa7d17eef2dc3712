// Package container is the source of tools that are images: their programs run in containers of containerd.
package container

import (
	"bytes"
	"context"
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
	return tool.Kind{Name: "container", Level: v1alpha1.IsolationContainer, Facts: facts, Isolate: isolate}
}

func facts(s *v1alpha1.ToolSpec) (tool.Facts, error) {
	c := s.Source.Container
	// Where containerd is not root's, its sockets are on the disk of the run's files.
	f := tool.Facts{Image: c.Image, Function: c.Tool, Describes: !perCall(c), WritesDisk: true, Supplies: !perCall(c), Receives: true}
	if perCall(c) {
		f.Function = ""
	}
	return f, nil
}

// perCall reports whether a program of the image is started for each call.
func perCall(c *v1alpha1.ContainerSource) bool { return c.Protocol == v1alpha1.ProtocolExec }

// source starts the programs of images.
type source struct {
	at   *isolation
	pool *tool.Pool
	// run is what the pool was made with.
	run tool.PoolOptions

	begun sync.WaitGroup
	mu    sync.Mutex
	held  map[string]*held
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
	runtime, err := s.at.connect()
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
		return s.options(container.Spec{Run: s.run.Run, Tool: d.Name, Image: c.Image, Argv: c.Command})
	}
	return program.Functions(ctx, d)
}

// Serve implements tool.Source. A call that may use paths outside the workspace gets a
// container of its own, unless mounts show them anyway.
func (s *source) Serve(ctx context.Context, d *tool.Definition, beyond tool.Outside) (tool.Server, error) {
	one := s.More(d, beyond)
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

// More implements tool.Images.
func (s *source) More(d *tool.Definition, beyond tool.Outside) *tool.Definition {
	return showing(d, slices.DeleteFunc(slices.Clone(beyond.Paths), func(o message.OutsidePath) bool {
		return slices.ContainsFunc(d.Spec.Isolation.Mounts, func(m v1alpha1.Mount) bool { return tool.Below(o.Real, m.Path) })
	}))
}

// Speak implements tool.Images.
func (s *source) Speak(ctx context.Context, d *tool.Definition, streams tool.Streams) (tool.Running, error) {
	c, err := s.spec(ctx, d)
	if err != nil {
		return nil, err
	}
	c.Stdin, c.Stdout, c.Stderr = streams.In, streams.Out, streams.Errs
	runtime, err := s.at.connect()
	if err != nil {
		return nil, err
	}
	p, err := runtime.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return process{p}, nil
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
	return s.pool.Process("container\x00"+d.Program(), d, s.program(d))
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
	runtime, err := s.at.connect()
	if err != nil {
		return host.Options{}, err
	}
	dir, err := runtime.SocketDir()
	return host.Options{Launch: runtime.PluginRunner(spec), TempDir: dir}, err
}

// spec is the container of a tool.
func (s *source) spec(ctx context.Context, d *tool.Definition) (container.Spec, error) {
	if err := s.at.check(d); err != nil {
		return container.Spec{}, err
	}
	src, l := d.Spec.Source.Container, d.Spec.Limits
	c := container.Spec{
		Run: s.run.Run, Tool: d.Program(), Image: src.Image, Argv: src.Command, Env: s.run.Env[d.Program()], Access: d.Spec.WorkspaceAccess,
		Mounts: d.Spec.Isolation.Mounts, Network: d.Spec.Network.Mode, RuntimeClass: src.RuntimeClass, Limits: container.Limits{Pids: l.Pids},
	}
	if l.Memory != nil {
		c.Limits.Memory = l.Memory.Value()
	}
	if l.CPU != nil {
		c.Limits.CPU = l.CPU.MilliValue()
	}
	if c.Network == v1alpha1.NetworkProxy && s.at.site.Egress != nil {
		c.Egress = func(ctx context.Context, l net.Listener) {
			s.at.site.Egress(ctx, l, []string{d.Program()}, d.Spec.Network.Allow)
		}
	}
	err := s.guard(ctx, d, &c)
	return c, err
}

// guard shows a container the files of the run without those that it must not see, and
// refuses mounts that show such files: of them nothing can be hidden.
func (s *source) guard(ctx context.Context, d *tool.Definition, c *container.Spec) error {
	sees := c.Access != v1alpha1.AccessNone
	if s.run.Guard == nil && sees {
		return reason.New(reason.Internal, "tool %q: no guard holds the files that its container would show", d.Name)
	}
	if s.run.Guard == nil || !sees && len(c.Mounts) == 0 {
		return nil
	}
	readOnly, masked, err := s.run.Guard(ctx)
	if err != nil {
		return err
	}
	var inside []string
	if sees {
		inside = tool.Within(masked, s.run.Dir)
		c.Workspace, c.ReadOnly, c.Masked = s.run.Dir, readOnly, append(tool.Within(s.at.site.Unseen, s.run.Dir), inside...)
	}
	for _, m := range c.Mounts {
		for _, hidden := range tool.Within(masked, m.Path) {
			if !slices.Contains(inside, hidden) {
				return reason.New(reason.IsolationUnavailable, "tool %q: mount %s: a policy hides %s from every program, which a container would show", d.Name, m.Path, hidden).
					WithHint("name in spec.isolation.mounts of the Tool what is needed of it, or run its program in a sandbox, with spec.source.exec or plugin")
			}
		}
	}
	return nil
}

const startHint = "check spec.source.container of the Tool"

// starter starts a program of an image per call: in a container that is held
// for the run, or in one of its own.
func (s *source) starter(d *tool.Definition) tool.Starter {
	return func(ctx context.Context, req host.CallRequest, env []string, out, errs io.Writer) (tool.Running, error) {
		in := bytes.NewReader(req.Args)
		if d.Spec.Isolation.Fresh {
			spec, err := s.spec(ctx, d)
			if err != nil {
				return nil, err
			}
			runtime, err := s.at.connect()
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
	at := s.held[d.Program()]
	if at == nil {
		at = &held{}
		s.held[d.Program()] = at
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
	runtime, err := s.at.connect()
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
	return nil
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
