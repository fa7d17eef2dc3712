package container

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/errdefs"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Labels of everything made here.
const (
	labelMade  = "agentctl.dev/made"
	labelOwner = "agentctl.dev/owner"
	labelRun   = "agentctl.dev/run"
	labelTool  = "agentctl.dev/tool"
	// labelRoot keeps a snapshot from being collected in the moment before the
	// container that refers to it exists.
	labelRoot = "containerd.io/gc.root"
)

// Process is a program that was started: the first of a container, or one of
// several in a container that is held.
type Process struct {
	rt     *Runtime
	id     string
	limits Limits
	stderr *tail
	// kill signals the process, or with all set ends all it started.
	signal func(ctx context.Context, sig syscall.Signal, all bool) error
	// ended asks containerd for the end of the process.
	ended func(ctx context.Context) (<-chan containerd.ExitStatus, error)
	// remove deletes what is left once the process has ended.
	remove func(ctx context.Context) error
	io     cio.IO
	pid    int
	group  string // the container's id, by which its cgroup is named
	task   containerd.Task
	plan   plan

	// dead is closed when the program has ended, done when its output has been
	// handed over, too.
	dead   chan struct{}
	done   chan struct{}
	oom    chan struct{} // closed at the first "out of memory" of the container
	oomed  sync.Once
	before counts
	egress func() // ends the proxy; nil without
	exit   ExitInfo

	mu     sync.Mutex
	killed int // processes when we killed it, -1: we did not
}

// drainWait bounds the wait for the last output once the program has ended.
const drainWait = time.Second

// undoTime bounds the removal of what did not come about.
const undoTime = 5 * time.Second

// Start makes a container and starts its program. The context bounds the start
// only; end the program by Kill. Start undoes everything when it returns an error.
func (r *Runtime) Start(ctx context.Context, spec Spec) (*Process, error) {
	img, err := r.ready(ctx, &spec)
	if err != nil {
		return nil, startError(&spec, err)
	}
	release, err := r.slot(ctx)
	if err != nil {
		return nil, startError(&spec, err)
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		release()
		return nil, startError(&spec, errClosed)
	}
	r.cleanups.Add(1)
	r.mu.Unlock()
	type outcome struct {
		process *Process
		err     error
	}
	out := make(chan outcome)
	go func() {
		defer r.cleanups.Done()
		p, err := r.launch(ctx, &spec, img, release)
		select {
		case out <- outcome{p, err}:
		case <-ctx.Done():
			if err == nil { // nobody waits any more
				p.Kill(0)
			}
		}
	}()
	select {
	case o := <-out:
		if o.err != nil {
			return nil, startError(&spec, o.err)
		}
		return o.process, nil
	case <-ctx.Done():
		return nil, startError(&spec, context.Cause(ctx))
	}
}

// startError says what was being started.
func startError(spec *Spec, err error) error {
	name := spec.Image
	if spec.Tool != "" {
		name = fmt.Sprintf("of tool %q (%s)", spec.Tool, spec.Image)
	}
	if r, ok := errors.AsType[*reason.Error](err); ok {
		return &reason.Error{Reason: r.Reason, Hint: r.Hint, Err: fmt.Errorf("start container %s: %w", name, err)}
	}
	return fmt.Errorf("start container %s: %w", name, err)
}

// launch is a container on its way; undo takes back what has been done so far.
type launch struct {
	rt      *Runtime
	client  *containerd.Client
	spec    *Spec
	plan    plan
	dirs    *dirs
	record  containerd.Container
	process *Process
	exit    <-chan containerd.ExitStatus
	run     func(context.Context) error
	undos   []func(context.Context) error
}

func (l *launch) onUndo(f func(context.Context) error) { l.undos = append(l.undos, f) }

func (l *launch) undo() {
	ctx, cancel := context.WithTimeout(l.rt.stopped, undoTime)
	defer cancel()
	for _, undo := range slices.Backward(l.undos) {
		if err := undo(ctx); err != nil && !errdefs.IsNotFound(err) {
			l.rt.opts.Log.Warn("a container that did not start is left for a sweep", "id", l.plan.id, "error", err)
		}
	}
	removeGroups(l.rt.opts.Namespace, l.plan.id)
}

// ready checks the spec and waits for everything that many containers share.
func (r *Runtime) ready(ctx context.Context, spec *Spec) (*image, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	if _, err := r.connected(ctx); err != nil {
		return nil, err
	}
	img, err := r.image(ctx, spec.Image)
	if err != nil {
		return nil, err
	}
	if !spec.hold && len(spec.Argv) == 0 && len(img.command) == 0 {
		return nil, reason.New(reason.ToolError, "neither the Tool nor the image names a command").
			WithHint("set spec.source.container.command in the Tool")
	}
	return img, r.listen() // for "out of memory", before anything can run out
}

// launchTime bounds the making of one container.
const launchTime = 30 * time.Second

// launch makes a container and starts its program. What is asked of containerd
// is not broken off when the caller gives up: runc, killed half-way, leaves
// cgroups that nobody knows of. The caller is only not kept waiting.
func (r *Runtime) launch(caller context.Context, spec *Spec, img *image, release func()) (_ *Process, err error) {
	defer release()
	l := &launch{rt: r, client: r.client, spec: spec}
	l.plan = plan{spec: spec, image: img, id: "a" + strings.ToLower(rand.Text()), namespace: r.opts.Namespace, entry: r.opts.Entry, swap: countsSwap()}
	defer func() {
		if err != nil {
			l.undo()
		}
	}()
	ctx, cancel := context.WithTimeout(r.stopped, launchTime)
	defer cancel()
	for _, step := range []func(context.Context) error{l.prepare, l.create, l.task, l.start} {
		if err := caller.Err(); err != nil {
			return nil, err
		}
		if err := step(ctx); err != nil {
			if errdefs.IsNotFound(err) { // the image may have been removed since we looked
				r.shelf.forget(spec.Image)
			}
			return nil, err
		}
	}
	r.mu.Lock()
	r.live[l.process.id] = l.process
	closed := r.closed
	r.cleanups.Add(1) // Close waits for us, so the count is not 0
	r.mu.Unlock()
	go l.process.watch(l.exit)
	if closed {
		l.process.Kill(0)
		return nil, errClosed
	}
	return l.process, nil
}

// prepare makes the files and mounts the container needs on the host.
func (l *launch) prepare(context.Context) error {
	who, err := choose(l.spec.Workspace, l.spec.Access)
	if err != nil {
		return err
	}
	if l.dirs, err = l.rt.folders(); err != nil {
		return err
	}
	etc, err := l.dirs.etcFiles(who)
	if err != nil {
		return err
	}
	l.plan.who, l.plan.etc, l.plan.workspace = who, etc, l.spec.Workspace
	if who.mapped {
		place, err := l.rt.remount(l.dirs, l.plan.id, l.spec.Workspace, who)
		if err != nil {
			return err
		}
		l.plan.workspace = place
		l.onUndo(func(context.Context) error { return detach(place) })
	}
	if l.spec.socketDir != "" {
		return own(l.spec.socketDir, who)
	}
	return nil
}

// create makes the snapshot and the container's record.
func (l *launch) create(ctx context.Context) error {
	id, snapshotter := l.plan.id, l.rt.info.Snapshotter
	labels := map[string]string{labelOwner: l.rt.opts.Owner, labelRun: label(l.spec.Run), labelTool: label(l.spec.Tool)}
	snapshot := map[string]string{labelOwner: l.rt.opts.Owner, labelRoot: time.Now().UTC().Format(time.RFC3339)}
	if _, err := l.client.SnapshotService(snapshotter).Prepare(ctx, id, l.plan.image.parent, snapshots.WithLabels(snapshot)); err != nil {
		return fmt.Errorf("its file system: %w", err)
	}
	l.onUndo(func(ctx context.Context) error { return l.client.SnapshotService(snapshotter).Remove(ctx, id) })
	runtime := l.spec.RuntimeClass
	if runtime == "" {
		runtime = defaultRuntime
	}
	c, err := l.client.NewContainer(ctx, id,
		containerd.WithSnapshotter(snapshotter), containerd.WithSnapshot(id), containerd.WithImageName(l.plan.image.name),
		containerd.WithRuntime(runtime, nil), containerd.WithSpec(l.plan.oci()), containerd.WithContainerLabels(labels))
	if err != nil {
		return err
	}
	l.onUndo(func(ctx context.Context) error { return c.Delete(ctx) })
	l.record, l.process = c, l.rt.newProcess(id, l.spec)
	l.process.group, l.process.plan = id, l.plan
	l.process.remove = func(ctx context.Context) error { return c.Delete(ctx, containerd.WithSnapshotCleanup) }
	return nil
}

// defaultRuntime is runc by its shim.
const defaultRuntime = "io.containerd.runc.v2"

// label cuts a value to what containerd takes.
func label(v string) string { return v[:min(len(v), 1024)] }

// task creates the process, which waits to be started.
func (l *launch) task(ctx context.Context) error {
	in, err := newInput(l.spec)
	if err != nil {
		return err
	}
	p := l.process
	task, err := l.record.NewTask(ctx, in.creator(p, l.dirs.fifos()))
	if l.plan.who.mapped { // bound by now, or never
		if detachErr := detach(l.plan.workspace); err == nil {
			err = detachErr
		}
	}
	if err != nil {
		return runtimeError(l.spec, err)
	}
	p.task, p.io, p.pid = task, task.IO(), int(task.Pid())
	p.ended = task.Wait
	p.signal = func(ctx context.Context, sig syscall.Signal, all bool) error {
		if all {
			return task.Kill(ctx, syscall.SIGKILL, containerd.WithKillAll)
		}
		return task.Kill(ctx, sig)
	}
	removeContainer := p.remove
	p.remove = func(ctx context.Context) error {
		if _, err := task.Delete(ctx); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
		return removeContainer(ctx)
	}
	l.onUndo(func(ctx context.Context) error {
		_, err := task.Delete(ctx, containerd.WithProcessKill)
		return err
	})
	in.closeInput = func(ctx context.Context) error { return task.CloseIO(ctx, containerd.WithStdinCloser) }
	if l.exit, err = task.Wait(l.rt.stopped); err != nil {
		return err
	}
	if err := l.serve(ctx); err != nil {
		return err
	}
	l.run = func(ctx context.Context) error {
		defer in.started(l.rt, p)
		return task.Start(ctx)
	}
	return nil
}

// start lets the process go.
func (l *launch) start(ctx context.Context) error { return runtimeError(l.spec, l.run(ctx)) }

// serve opens the one address the program can reach, before the program runs.
func (l *launch) serve(ctx context.Context) error {
	if l.spec.Network != v1alpha1.NetworkProxy {
		return nil
	}
	listener, err := listenIn(ctx, uint32(l.process.pid), proxyAddress)
	if err != nil {
		return err
	}
	l.process.egress = l.rt.proxy(l.spec.Egress, listener)
	l.onUndo(func(context.Context) error { l.process.egress(); return nil })
	return nil
}

// proxy runs serve until the returned function is called, which waits for it.
func (r *Runtime) proxy(serve func(context.Context, net.Listener), l net.Listener) (stop func()) {
	ctx, cancel := context.WithCancel(r.stopped)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serve(ctx, l)
	}()
	return sync.OnceFunc(func() {
		cancel()
		_ = l.Close()
		<-ended
	})
}

// runtimeError explains a shim that does not exist.
func runtimeError(spec *Spec, err error) error {
	if err == nil {
		return nil
	}
	if spec.RuntimeClass != "" && (strings.Contains(err.Error(), "not installed") || strings.Contains(err.Error(), "invalid runtime name") || errdefs.IsNotFound(err)) {
		return reason.New(reason.IsolationUnavailable, "containerd has no runtime %q: %w", spec.RuntimeClass, err).
			WithHint("install its shim beside containerd, or set spec.source.container.runtimeClass to a runtime that is there, or to nothing for runc")
	}
	return err
}

func (r *Runtime) newProcess(id string, spec *Spec) *Process {
	return &Process{
		rt: r, id: id, limits: spec.Limits.withDefaults(), stderr: &tail{}, killed: -1,
		dead: make(chan struct{}), done: make(chan struct{}), oom: make(chan struct{}),
	}
}

// ID is the container's id in containerd, with that of the process behind it
// where the container holds several.
func (p *Process) ID() string { return p.id }

// PID is the program's process id as this host counts, that of agentctl-entry.
func (p *Process) PID() int { return p.pid }

// Done is closed when Wait would return.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns when the program has ended, what it left behind has been killed,
// and its output has been handed over. Deleting the container goes on.
func (p *Process) Wait() ExitInfo {
	<-p.done
	return p.exit
}

// Stderr returns the last lines the program wrote there, made safe to show.
func (p *Process) Stderr() string { return p.stderr.String() }

// watch waits for the end, collects what can be known, and deletes.
func (p *Process) watch(exit <-chan containerd.ExitStatus) {
	defer p.rt.cleanups.Done()
	code, err := p.await(exit)
	close(p.dead)
	p.drain()
	p.exit = p.explain(code, err)
	if p.egress != nil {
		p.egress()
	}
	p.rt.mu.Lock()
	delete(p.rt.live, p.id)
	p.rt.mu.Unlock()
	close(p.done)
	ctx, cancel := context.WithTimeout(p.rt.stopped, undoTime)
	defer cancel()
	if err := p.remove(ctx); err != nil && !errdefs.IsNotFound(err) {
		p.rt.opts.Log.Warn("a container is left for a sweep", "id", p.id, "error", err)
	}
}

// Bounds of the questions after a connection that broke off: a daemon that is
// being restarted knows its containers again when it is back.
const (
	askAgain     = 100 * time.Millisecond
	askAgainTime = 15 * time.Second
)

// await returns the exit code. An error is one of the connection.
func (p *Process) await(exit <-chan containerd.ExitStatus) (uint32, error) {
	var end time.Time
	for {
		var err error
		select {
		case status := <-exit:
			if err = status.Error(); err == nil {
				return status.ExitCode(), nil
			}
		case <-p.rt.stopped.Done():
			return 0, errClosed
		}
		if end.IsZero() {
			end = time.Now().Add(askAgainTime)
		}
		if errdefs.IsNotFound(err) || time.Now().After(end) {
			return 0, err
		}
		t := time.NewTimer(askAgain)
		select {
		case <-t.C:
		case <-p.rt.stopped.Done():
			t.Stop()
			return 0, errClosed
		}
		if exit, err = p.ended(p.rt.stopped); err != nil {
			return 0, err
		}
	}
}

// drain waits for the last output. Everything in the container is dead, so only
// a process of a held container that got away can still hold the pipe.
func (p *Process) drain() {
	copied := make(chan struct{})
	go func() {
		p.io.Wait()
		close(copied)
	}()
	late := time.NewTimer(drainWait)
	defer late.Stop()
	select {
	case <-copied:
	case <-late.C:
		p.io.Cancel()
		<-copied
	}
}

// killTime bounds a kill from the signal to the end.
const killTime = 3 * time.Second

// Kill ends the program and all it started: SIGTERM first when grace is not 0,
// SIGKILL to whatever is left after it. To kill twice is harmless.
func (p *Process) Kill(grace time.Duration) {
	ctx, cancel := context.WithTimeout(p.rt.stopped, grace+killTime)
	defer cancel()
	if grace > 0 {
		_ = p.signal(ctx, syscall.SIGTERM, false) // what has ended takes no signal
		t := time.NewTimer(grace)
		select {
		case <-p.dead:
		case <-t.C:
		}
		t.Stop()
	}
	select {
	case <-p.dead:
	default:
		p.mu.Lock()
		if p.killed < 0 {
			p.killed = p.count()
		}
		p.mu.Unlock()
		if err := p.signal(ctx, syscall.SIGKILL, true); err != nil && !errdefs.IsNotFound(err) && ctx.Err() == nil {
			p.rt.opts.Log.Warn("a container does not take the signal to end", "id", p.id, "error", err)
		}
	}
	select {
	case <-p.done:
	case <-ctx.Done():
	}
}

// drop swallows the errors of a writer: whoever stops reading must not make the
// program block.
type drop struct{ w io.Writer }

func (d *drop) Write(b []byte) (int, error) {
	if d.w != nil {
		if _, err := d.w.Write(b); err != nil {
			d.w = nil
		}
	}
	return len(b), nil
}
