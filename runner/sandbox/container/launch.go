package container

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	containersapi "github.com/containerd/containerd/api/services/containers/v1"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// launch is a container that is being started; undo reverts what has been done
// so far.
type launch struct {
	rt      *Runtime
	daemon  *daemon
	spec    *Spec
	plan    plan
	dirs    *dirs
	root    []mount.Mount
	in      *input
	process *Process
	sources []*os.File // of the mounts
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

// launchTime bounds the making of one container.
const launchTime = 30 * time.Second

// launch creates a container and starts its program. Requests to containerd are
// not cancelled when the caller gives up: runc, killed half-way, leaves cgroups
// that are not recorded anywhere. Only the caller stops waiting.
func (r *Runtime) launch(caller context.Context, spec *Spec, img *image, release func()) (_ *Process, err error) {
	defer release()
	l := &launch{rt: r, daemon: r.daemon, spec: spec}
	l.plan = plan{spec: spec, image: img, id: "a" + strings.ToLower(rand.Text()), namespace: r.opts.Namespace, entry: r.opts.Entry, swap: countsSwap()}
	defer func() {
		if err != nil {
			l.undo()
		}
		for _, f := range l.sources {
			_ = f.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(r.stopped, launchTime)
	defer cancel()
	for _, step := range []func(context.Context) error{l.prepare, l.create, l.enter, l.start} {
		if err := caller.Err(); err != nil {
			return nil, err
		}
		if err := step(ctx); err != nil {
			if errdefs.IsNotFound(err) { // the image may have been removed since the check
				r.shelf.forget(img.key)
			}
			return nil, err
		}
	}
	r.mu.Lock()
	r.live[l.process.id] = l.process
	closed := r.closed
	r.cleanups.Add(1) // Close waits for this goroutine, so the count is not 0
	r.mu.Unlock()
	go l.process.watch()
	if closed {
		l.process.Kill(0)
		return nil, errClosed
	}
	return l.process, nil
}

// prepare creates the files and mounts that the container needs on the host.
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
	for _, m := range l.spec.Mounts {
		f, err := openSource(m.Path)
		if err != nil {
			return err
		}
		l.sources = append(l.sources, f)
	}
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

// create creates the snapshot and the container's record.
func (l *launch) create(ctx context.Context) (err error) {
	id, owner := l.plan.id, l.rt.opts.Owner
	labels := map[string]string{labelOwner: owner, labelRoot: time.Now().UTC().Format(time.RFC3339)}
	if l.root, err = l.daemon.snapshots.Prepare(ctx, id, l.plan.image.parent, snapshots.WithLabels(labels)); err != nil {
		return fmt.Errorf("its file system: %w", err)
	}
	l.onUndo(func(ctx context.Context) error { return l.daemon.forget(ctx, id) })
	runtime := l.spec.RuntimeClass
	if runtime == "" {
		runtime = defaultRuntime
	}
	l.process = l.rt.newProcess(id, l.spec)
	l.process.group, l.process.plan = id, l.plan
	return l.daemon.record(ctx, &containersapi.Container{
		ID: id, Image: l.plan.image.name, Snapshotter: l.rt.info.Snapshotter, SnapshotKey: id,
		Labels:  map[string]string{labelOwner: owner, labelRun: label(l.spec.Run), labelTool: label(l.spec.Tool)},
		Runtime: &containersapi.Container_Runtime{Name: runtime},
	}, l.plan.oci())
}

// defaultRuntime is runc by its shim.
const defaultRuntime = "io.containerd.runc.v2"

// label cuts a value to what containerd takes.
func label(v string) string { return strings.ToValidUTF8(v[:min(len(v), 1024)], "") }

// enter creates the process, which waits to be started.
func (l *launch) enter(ctx context.Context) error {
	p := l.process
	var err error
	if l.in, err = newInput(l.spec); err != nil {
		return err
	}
	t, err := l.daemon.newTask(ctx, l.plan.id, l.root, l.in.creator(p, l.dirs.fifos()))
	if l.plan.who.mapped { // bound by now, or never
		if detachErr := detach(l.plan.workspace); err == nil {
			err = detachErr
		}
	}
	if t != nil {
		l.onUndo(t.discard)
	}
	if err != nil {
		return runtimeError(l.spec, err)
	}
	p.task = t
	if err := l.sameSources(); err != nil {
		return err
	}
	p.end = func(ctx context.Context) error { return t.signal(ctx, syscall.SIGKILL, true) }
	p.remove = func(ctx context.Context) error {
		if err := t.remove(ctx); err != nil {
			return err
		}
		return l.daemon.forget(ctx, l.plan.id)
	}
	return l.serve(ctx)
}

// sameSources reports whether the process sees the mounts that were opened. A
// runtime other than runc may run its processes in a virtual machine, where
// this cannot be checked.
func (l *launch) sameSources() error {
	if l.spec.RuntimeClass != "" {
		return nil
	}
	for _, f := range l.sources {
		if err := sameSource(l.process.task.pid, f); err != nil {
			return err
		}
	}
	return nil
}

// start lets the process go.
func (l *launch) start(ctx context.Context) error {
	if err := l.process.task.start(ctx); err != nil {
		return runtimeError(l.spec, err)
	}
	l.in.started(l.rt, l.process)
	return nil
}

// serve opens the one address the program can reach, before the program runs.
func (l *launch) serve(ctx context.Context) error {
	if l.spec.Network != v1alpha1.NetworkProxy {
		return nil
	}
	listener, err := listenIn(ctx, uint32(l.process.task.pid), proxyAddress)
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
	if spec.RuntimeClass != "" && unknownRuntime(err) {
		return reason.New(reason.IsolationUnavailable, "containerd has no runtime %q: %w", spec.RuntimeClass, err).
			WithHint("install its shim beside containerd, or set spec.source.container.runtimeClass to a runtime that is there, or to nothing for runc")
	}
	return err
}
