package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Held is a container without a program of its own, in which programs are
// started by call: protocol Exec without the cost of a container per call.
type Held struct {
	rt    *Runtime
	first *Process
	proc  *specs.Process
	plan  plan
	calls atomic.Uint64
}

// Exec is a program to start in a held container.
type Exec struct {
	// Argv is the program and its arguments. Default: those of the container.
	Argv []string
	// Env are variables as NAME=value, besides those of the container.
	Env []string
	// Stdin, Stdout and Stderr are as in Spec.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Hold starts a container that stays until it is closed. Argv and Env of spec
// are for the programs that Exec names no others for; its streams are not used.
func (r *Runtime) Hold(ctx context.Context, spec Spec) (*Held, error) {
	s := spec
	s.hold, s.Stdin, s.Stdout, s.Stderr = true, nil, nil, nil
	first, err := r.Start(ctx, s)
	if err != nil {
		return nil, err
	}
	h := &Held{rt: r, first: first, plan: first.plan}
	h.plan.spec = &spec
	h.proc = h.plan.oci().Process
	if len(h.plan.argv()) == 0 {
		h.Close()
		return nil, startError(&spec, errors.New("neither the Tool nor the image names a command"))
	}
	return h, nil
}

// Start starts a program in the container. The context bounds the start only.
func (h *Held) Start(ctx context.Context, x Exec) (*Process, error) {
	spec := *h.plan.spec
	spec.Env = append(append([]string{}, spec.Env...), x.Env...)
	spec.Stdin, spec.Stdout, spec.Stderr = x.Stdin, x.Stdout, x.Stderr
	if len(x.Argv) > 0 {
		spec.Argv = x.Argv
	}
	p, err := h.start(h.rt.context(ctx), &spec)
	if err != nil {
		return nil, fmt.Errorf("start %s in container %s: %w", strings.Join((&plan{spec: &spec, image: h.plan.image}).argv()[:1], ""), h.first.id, err)
	}
	return p, nil
}

func (h *Held) start(ctx context.Context, spec *Spec) (*Process, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	in, err := newInput(spec)
	if err != nil {
		return nil, err
	}
	dirs, err := h.rt.folders()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("c%d", h.calls.Add(1))
	p := h.rt.newProcess(h.first.id+"/"+name, spec)
	p.group = h.first.group
	p.before = p.counts()
	proc := *h.proc
	proc.Args = (&plan{spec: spec, image: h.plan.image}).args()
	t, err := h.first.task.daemon.add(ctx, h.first.id, name, &proc, in.creator(p, dirs.fifos()))
	if err != nil {
		return nil, err
	}
	undo := func() {
		ctx, cancel := context.WithTimeout(h.rt.stopped, undoTime)
		defer cancel()
		_ = t.discard(ctx) // or it ends with the container
	}
	if err := t.start(ctx); err != nil {
		undo()
		return nil, err
	}
	p.task, p.remove = t, t.remove
	p.end = func(ctx context.Context) error { return h.end(ctx, p) }
	h.rt.mu.Lock()
	defer h.rt.mu.Unlock()
	if h.rt.closed {
		go undo()
		return nil, errClosed
	}
	h.rt.live[p.id] = p
	h.rt.cleanups.Add(1)
	in.started(h.rt, p)
	go p.watch()
	return p, nil
}

// end kills one of several programs. agentctl-entry becomes the parent of the
// program's orphans, kills them and ends. If it does not, since the program may
// have stopped or killed it, the whole container is killed.
func (h *Held) end(ctx context.Context, p *Process) error {
	if err := p.task.signal(ctx, syscall.SIGQUIT, false); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	quick, cancel := context.WithTimeout(ctx, entryTime)
	defer cancel()
	select {
	case <-p.dead:
		return nil
	case <-quick.Done():
	}
	h.first.Kill(0)
	return nil
}

// entryTime is how long agentctl-entry may take to end a program and what it
// has started.
const entryTime = 2 * time.Second

// Done is closed when the container has ended.
func (h *Held) Done() <-chan struct{} { return h.first.Done() }

// Wait returns when the container has ended.
func (h *Held) Wait() ExitInfo { return h.first.Wait() }

// ID is the container's id in containerd.
func (h *Held) ID() string { return h.first.id }

// Close ends every program in the container, and the container.
func (h *Held) Close() { h.first.Kill(0) }
