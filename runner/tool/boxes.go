package tool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox/container"
)

// Boxes start the programs of tools that are images.
type Boxes struct {
	Runtime *container.Runtime
	// Run is the id that containers are labelled with.
	Run string
	// Unseen are folders of which no tool may see anything.
	Unseen []string
	// Guard returns the files of the run that no program may change, and those
	// that none may read, as absolute paths. It waits until the files are there.
	Guard func(context.Context) (readOnly, masked []string, err error)
	// Egress serves the network of tools that reach what a list allows.
	Egress func(ctx context.Context, l net.Listener, tools, allow []string)

	begun  sync.WaitGroup
	mu     sync.Mutex
	places map[string]*place
}

// boxed says whether a tool is an image.
func boxed(d *Definition) bool { return d.Spec.Source.Container != nil }

// Check refuses mounts that would show more than they say.
func (b *Boxes) Check(d *Definition) error {
	for _, m := range d.Spec.Isolation.Mounts {
		err := b.mountable(m.Path)
		if err != nil {
			return reason.New(reason.IsolationUnavailable, "tool %q: %w", d.Name, err).WithHint("check spec.isolation.mounts of the Tool")
		}
	}
	return nil
}

// mountable is stricter than for a sandbox: what containerd mounts is looked up
// once more when it does, by whoever may have turned a link meanwhile, and of what
// it has mounted nothing can be hidden.
func (b *Boxes) mountable(path string) error {
	target, err := mountable(path)
	if err != nil {
		return err
	}
	if target != path {
		return fmt.Errorf("mount %s: a link leads to it: name %s", path, target)
	}
	masked, err := Place{Masked: b.Unseen}.masked(path, target)
	if err == nil && len(masked) > 0 {
		err = fmt.Errorf("mount %s: %s lies in it, which no tool may see", path, masked[0])
	}
	return err
}

// spec is the container of a tool.
func (b *Boxes) spec(ctx context.Context, p *Pool, d *Definition) (container.Spec, error) {
	if err := b.Check(d); err != nil {
		return container.Spec{}, err
	}
	src, l := d.Spec.Source.Container, d.Spec.Limits
	s := container.Spec{
		Run: b.Run, Tool: d.Name, Image: src.Image, Argv: src.Command, Env: p.Env[d.Name], Access: d.Spec.WorkspaceAccess,
		Mounts: d.Spec.Isolation.Mounts, Network: d.Spec.Network.Mode, RuntimeClass: src.RuntimeClass, Limits: container.Limits{Pids: l.Pids},
	}
	if l.Memory != nil {
		s.Limits.Memory = l.Memory.Value()
	}
	if l.CPU != nil {
		s.Limits.CPU = l.CPU.MilliValue()
	}
	if s.Network == v1alpha1.NetworkProxy && b.Egress != nil {
		s.Egress = func(ctx context.Context, l net.Listener) { b.Egress(ctx, l, []string{d.Name}, d.Spec.Network.Allow) }
	}
	if s.Access == v1alpha1.AccessNone {
		return s, nil
	}
	s.Workspace = p.Dir
	var err error
	s.ReadOnly, s.Masked, err = b.Guard(ctx)
	s.Masked = append(within(b.Unseen, p.Dir), s.Masked...)
	return s, err
}

// launch is how a plugin in an image is started.
func (b *Boxes) launch(p *Pool, d *Definition) func(context.Context) (host.Options, error) {
	return func(ctx context.Context) (host.Options, error) {
		s, err := b.spec(ctx, p, d)
		if err != nil {
			return host.Options{}, err
		}
		return b.options(s)
	}
}

func (b *Boxes) options(s container.Spec) (host.Options, error) {
	dir, err := b.Runtime.SocketDir()
	return host.Options{Launch: b.Runtime.PluginRunner(s), TempDir: dir}, err
}

// describe asks an image what its tools take: in a container of its own that is
// shown nothing of the run, because nothing has been decided about it yet.
func (b *Boxes) describe(ctx context.Context, d *Definition) ([]host.ToolInfo, error) {
	src := d.Spec.Source.Container
	one := &program{name: imageName(d), image: true, tools: []string{d.Name}, launch: func(context.Context) (host.Options, error) {
		return b.options(container.Spec{Run: b.Run, Tool: d.Name, Image: src.Image, Argv: src.Command})
	}}
	return one.describe(ctx)
}

// starter starts a program of an image per call: in a container that is held
// for the run, or in one of its own.
func (b *Boxes) starter(p *Pool, d *Definition) starter {
	return func(ctx context.Context, req Request, env []string, out, errs io.Writer) (running, error) {
		in := bytes.NewReader(req.Args)
		hint := "check spec.source.container of the Tool"
		if d.Spec.Isolation.Fresh {
			s, err := b.spec(ctx, p, d)
			if err != nil {
				return nil, err
			}
			s.Env = append(slices.Clone(s.Env), env...)
			s.Stdin, s.Stdout, s.Stderr = in, out, errs
			proc, err := b.Runtime.Start(ctx, s)
			return inBox(proc, err, hint)
		}
		held, err := b.hold(ctx, p, d)
		if err != nil {
			return nil, wrapped(err, hint)
		}
		proc, err := held.Start(ctx, container.Exec{Env: env, Stdin: in, Stdout: out, Stderr: errs})
		return inBox(proc, err, hint)
	}
}

// place is where the container of a tool is held.
type place struct {
	mu   sync.Mutex
	held *container.Held
}

// hold returns the container that is held for a tool, and makes it when there is
// none or it has ended.
func (b *Boxes) hold(ctx context.Context, p *Pool, d *Definition) (*container.Held, error) {
	b.mu.Lock()
	if b.places == nil {
		b.places = map[string]*place{}
	}
	at := b.places[d.Name]
	if at == nil {
		at = &place{}
		b.places[d.Name] = at
	}
	b.mu.Unlock()
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.held != nil {
		select {
		case <-at.held.Done():
		default:
			return at.held, nil
		}
	}
	s, err := b.spec(ctx, p, d)
	if err == nil {
		at.held, err = b.Runtime.Hold(ctx, s)
	}
	return at.held, err
}

// Begin makes ready behind the first request what calls will need: the
// containers of programs that are started by call, and room, by removing what
// killed runs have left. Close waits for it.
func (b *Boxes) Begin(ctx context.Context, p *Pool, tools []Definition) {
	b.begun.Go(func() {
		_, _ = b.Runtime.Sweep(ctx) // what cannot be removed now is in nobody's way
	})
	for i := range tools {
		d := &tools[i]
		if boxed(d) && d.Spec.Source.Container.Protocol == v1alpha1.ProtocolExec && !d.Spec.Isolation.Fresh {
			b.begun.Go(func() {
				_, _ = b.hold(ctx, p, d) // an error is told to the call that needs it
			})
		}
	}
}

// Close lets the containers go. What was begun has ended with its context.
func (b *Boxes) Close() error {
	b.begun.Wait()
	return b.Runtime.Close()
}

// inContainer is a program in a container as an exec tool sees it.
type inContainer struct{ *container.Process }

func inBox(p *container.Process, err error, hint string) (running, error) {
	if err != nil {
		return nil, wrapped(err, hint)
	}
	return inContainer{p}, nil
}

// wrapped keeps the reason an error has.
func wrapped(err error, hint string) error {
	if reason.Of(err) != reason.Internal {
		return err
	}
	return reason.New(reason.ToolError, "%w", err).WithHint("%s", hint)
}

func (p inContainer) end() ending {
	info := p.Wait()
	return ending{info.Code, info.Signal, info.Detail}
}

// imageName is what errors call the program of an image.
func imageName(d *Definition) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s", d.Spec.Source.Container.Image, strings.Join(d.Spec.Source.Container.Command, " ")))
}
