package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"

	"agentctl.dev/agentctl/api/reason"
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
	task   *task
	group  string // the container's id, by which its cgroup is named
	// end kills the program with all it started; remove deletes what is left
	// once it has ended.
	end    func(ctx context.Context) error
	remove func(ctx context.Context) error
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
	killed int // processes when this runtime killed it; -1: it did not
}

// drainWait bounds the wait for the last output once the program has ended.
const drainWait = time.Second

// undoTime bounds the removal of what did not come about.
const undoTime = 5 * time.Second

// Start creates a container and starts its program. The context bounds the
// start only; end the program by Kill. Start undoes everything when it returns
// an error.
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
			if err == nil { // the caller no longer waits
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

// startError adds which program was being started.
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
func (p *Process) PID() int { return p.task.pid }

// Done is closed when Wait would return.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns when the program has ended, what it left behind has been killed,
// and its output has been delivered. The container is deleted in the
// background.
func (p *Process) Wait() ExitInfo {
	<-p.done
	return p.exit
}

// Stderr returns the last lines the program wrote there, made safe to show.
func (p *Process) Stderr() string { return p.stderr.String() }

// watch waits for the end, collects what is known about it, and deletes.
func (p *Process) watch() {
	defer p.rt.cleanups.Done()
	code, err := p.await()
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

// Bounds of the requests after a broken connection: a daemon that is being
// restarted knows its containers again when it is back.
const (
	askAgain     = 100 * time.Millisecond
	askAgainTime = 15 * time.Second
)

// await returns the exit code. An error is one of the connection.
func (p *Process) await() (uint32, error) {
	var end time.Time
	for {
		code, err := p.task.wait(p.rt.stopped)
		if err == nil {
			return code, nil
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
	}
}

// drain waits for the last output. Everything in the container is dead, so only
// a process of a held container that got away can still hold the pipe.
func (p *Process) drain() {
	copied := make(chan struct{})
	go func() {
		p.task.io.Wait()
		close(copied)
	}()
	late := time.NewTimer(drainWait)
	defer late.Stop()
	select {
	case <-copied:
	case <-late.C:
		p.task.io.Cancel()
		<-copied
	}
}

// killTime bounds a kill from the signal to the end.
const killTime = 3 * time.Second

// Kill ends the program and all it started: SIGTERM first when grace is not 0,
// SIGKILL to what is left after it. A second Kill is harmless.
func (p *Process) Kill(grace time.Duration) {
	ctx, cancel := context.WithTimeout(p.rt.stopped, grace+killTime)
	defer cancel()
	if grace > 0 {
		p.ask(grace)
	}
	select {
	case <-p.dead:
	default:
		p.mu.Lock()
		if p.killed < 0 {
			p.killed = p.count()
		}
		p.mu.Unlock()
		if err := p.end(ctx); err != nil && !errdefs.IsNotFound(err) && ctx.Err() == nil {
			p.rt.opts.Log.Warn("a container does not take the signal to end", "id", p.id, "error", err)
		}
	}
	select {
	case <-p.done:
	case <-ctx.Done():
	}
}

// ask sends SIGTERM to the program and waits for its end. The signal goes
// straight to agentctl-entry's child. Every process inside could signal the
// first process of the container, and the sender would not be known. Where the
// child cannot be found, as in a virtual machine, no signal is sent.
func (p *Process) ask(grace time.Duration) {
	asked := false
	for _, child := range children(p.PID()) {
		asked = syscall.Kill(-child, syscall.SIGTERM) == nil || asked // a group of its own
	}
	if !asked {
		return
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.dead:
	case <-t.C:
	}
}

// children lists the processes a process has started.
func children(pid int) []int {
	var out []int
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range threads {
		text, _ := os.ReadFile(file)
		for f := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(f); err == nil && child > 1 {
				out = append(out, child)
			}
		}
	}
	return out
}

// drop ignores the errors of a writer: a reader that stops reading must not
// block the program.
type drop struct{ w io.Writer }

func (d *drop) Write(b []byte) (int, error) {
	if d.w != nil {
		if _, err := d.w.Write(b); err != nil {
			d.w = nil
		}
	}
	return len(b), nil
}
