package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// instance is a running sandbox: a helper that is its init, and the socket to
// talk to it. It runs until the launcher closes, the helper ends, or, if it is
// fresh, its program ends.
type instance struct {
	launcher *Launcher
	key      string
	profile  spec.Profile
	dir      *scratch
	group    *group
	proc     *os.Process
	conn     *net.UnixConn
	tail     *tail

	// ready is closed when the sandbox is built, or err is set.
	ready      chan struct{}
	err        error
	landlock   int
	unenforced []string

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan *spec.Reply
	inside  map[uint64]*inner
	plugins int
	over    bool

	// giveUp ends the building of the sandbox.
	giveUp context.CancelFunc
	// gone is closed when the helper, and with it everything inside, has ended
	// and nothing of the sandbox is left.
	gone   chan struct{}
	ending sync.Once
	cancel context.CancelFunc
	serve  sync.WaitGroup
}

// inner is a program in a sandbox, seen from outside.
type inner struct {
	instance *instance
	id       uint64
	pid      int
	fresh    bool
	tidy     bool
	exited   chan ExitInfo
}

// bootTime bounds the building of a sandbox, which takes some 5 ms.
const bootTime = 10 * time.Second

// answerTime bounds one answer of the helper.
const answerTime = 10 * time.Second

// errGone is the error of a request to a sandbox that has ended.
var errGone = errors.New("the sandbox has ended")

// instance returns the sandbox for a program: an existing sandbox with an equal
// profile, or a new one.
func (l *Launcher) instance(ctx context.Context, s *Spec, path string) (*instance, error) {
	profile := complete(s, path)
	if err := profile.Check(); err != nil {
		return nil, fmt.Errorf("start %s: its sandbox: %w", path, err)
	}
	name := key(&profile)
	l.mu.Lock()
	if s.Fresh {
		l.fresh++
		name = "fresh " + strconv.Itoa(l.fresh)
	}
	if l.closed || l.retired {
		l.mu.Unlock()
		return nil, errClosed
	}
	r := l.instances[name]
	if r == nil {
		r = &instance{
			launcher: l, key: name, profile: profile,
			ready: make(chan struct{}), gone: make(chan struct{}),
			waiting: map[uint64]chan *spec.Reply{}, inside: map[uint64]*inner{},
		}
		l.instances[name] = r
		var building context.Context
		building, r.giveUp = context.WithTimeoutCause(context.Background(), bootTime, fmt.Errorf("its sandbox did not stand within %v", bootTime))
		go r.begin(building)
	}
	l.mu.Unlock()
	select {
	case <-r.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.err != nil {
		return nil, fmt.Errorf("start %s: %w", path, r.err)
	}
	return r, nil
}

// begin builds the sandbox. The context of one caller does not cancel the
// building: other callers wait for the same sandbox.
func (r *instance) begin(ctx context.Context) {
	defer r.giveUp()
	err := r.boot(ctx)
	r.launcher.sweep.Do(func() {
		r.launcher.tidy.Go(func() { sweepScratch(r.launcher.opts.TempDir) })
	})
	if err == nil {
		err = r.protectAll(ctx)
	}
	if err != nil {
		r.kill()
		r.err = unavailable(err)
	}
	close(r.ready)
}

// unavailable gives an error of the building of a sandbox its reason.
func unavailable(err error) error {
	if _, ok := errors.AsType[*reason.Error](err); ok || errors.Is(err, errClosed) {
		return err
	}
	return reason.New(reason.IsolationUnavailable, "build its sandbox: %w", err).
		WithHint("agentctl doctor says which part of a sandbox this host does not give")
}

// boot starts the helper, sends it the description of the sandbox and waits
// until the sandbox is built.
func (r *instance) boot(ctx context.Context) (err error) {
	helper, err := r.launcher.helper()
	if err != nil {
		return reason.New(reason.IsolationUnavailable, "build its sandbox: %w", err).
			WithHint("run make build, or set AGENTCTL_LIBEXEC to the folder that holds %s", Helper)
	}
	if r.dir, err = newScratch(r.launcher.opts.TempDir); err != nil {
		return err
	}
	uid, gid := user(&r.profile)
	r.dir.uid, r.dir.gid = uid, gid
	boot := spec.Boot{Version: spec.Version, Profile: r.profile, Root: r.dir.root(), UID: uid, GID: gid}
	if list := knobs(r.profile.Limits); len(list) > 0 {
		r.group = newGroup(groupPlaces(), list, &boot.Profile.Limits)
	}
	boot.Profile.ReadOnly, boot.Profile.Masked = nil, nil // they come in pieces
	boot.Profile.Group = ""                               // the helper has no use for it
	first, err := spec.Encode(&boot)
	if err != nil {
		return err
	}
	if err := r.begun(ctx, helper); err != nil {
		return err
	}
	stands := make(chan *spec.Reply, 1)
	files := make(chan *os.File, 2)
	r.waiting[0] = stands
	go r.listen(files)
	if err := r.write(first, nil); err != nil {
		return r.explain(err)
	}
	reply, err := r.await(ctx, 0, stands)
	if err != nil {
		return err
	}
	r.landlock, r.unenforced = reply.Landlock, reply.Unenforced
	if lacks := r.launcher.opts.Lacks; lacks != nil && len(r.unenforced) > 0 {
		lacks(&r.profile, r.unenforced)
	}
	return r.open(files)
}

// begun returns the helper that was started ahead, if it fits, or starts one. A
// cgroup contains only processes that were forked in it.
func (r *instance) begun(ctx context.Context, helper string) (err error) {
	var f *forked
	if r.group == nil && r.profile.Network != spec.NetworkHost {
		f = r.launcher.takeSpare()
	}
	if f == nil {
		if f, err = r.launcher.fork(ctx, helper, r.profile.Network, r.group); err != nil {
			return err
		}
	}
	r.proc, r.conn, r.tail = f.proc, f.conn, f.tail
	return nil
}

// open takes the file system of the sockets, and the listener of the proxy, which
// it has served.
func (r *instance) open(files <-chan *os.File) error {
	// They came with the answer that has been received.
	next := func() (f *os.File) {
		select {
		case f = <-files:
		default:
		}
		return f
	}
	if err := r.dir.take(next()); err != nil {
		return err
	}
	if r.profile.Network != spec.NetworkProxy {
		return nil
	}
	if r.launcher.opts.Serve == nil {
		return errors.New("nobody serves its proxy")
	}
	f := next()
	if f == nil {
		return errors.New("the helper opened no listener for the proxy")
	}
	defer func() { _ = f.Close() }()
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("watch the proxy's listener: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		cancel()
		_ = l.Close()
		return errGone
	}
	r.cancel = cancel
	r.serve.Go(func() {
		defer func() { _ = l.Close() }()
		r.launcher.opts.Serve(ctx, l, &r.profile)
	})
	return nil
}

// start starts a program inside.
func (r *instance) start(ctx context.Context, s *Spec, path string, files []*os.File) (*inner, error) {
	g := &inner{instance: r, fresh: s.Fresh, tidy: s.Tidy, exited: make(chan ExitInfo, 1)}
	m := &spec.Request{Op: spec.OpStart, Path: path, Argv: s.Argv, Env: env(&r.profile, s.Env), Dir: s.Dir, Checked: s.Sha256 != ""}
	reply, err := r.ask(ctx, m, files, g)
	if refused, ok := errors.AsType[*refusal](err); ok && refused.errno != 0 && refused.text == refused.errno.Error() {
		return nil, withinSandbox(explain(refused.errno))
	}
	if err != nil {
		if ctx.Err() != nil && g.id != 0 { // it may start in a moment, and no caller would know its id
			g.sweep(time.Now().Add(sweepTime))
		}
		return nil, err
	}
	g.pid = reply.PID
	return g, nil
}

// withinSandbox adds to the error that the program was not found inside the
// sandbox, for it may well exist outside.
func withinSandbox(err error) error {
	return fmt.Errorf("in its sandbox: %w", err)
}

// signal sends a signal to the program's group.
func (g *inner) signal(sig syscall.Signal) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	_, _ = g.instance.ask(ctx, &spec.Request{Op: spec.OpSignal, Program: g.id, Signal: int(sig)}, nil, nil)
}

// last reports that the program needs no time to end: it is Tidy, no other
// program is in its sandbox, and none can be started any more. So everything
// that its end would stop is stopped with the sandbox.
func (g *inner) last() bool {
	r := g.instance
	r.launcher.mu.Lock()
	retired := r.launcher.retired
	r.launcher.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return retired && g.tidy && len(r.inside) == 1 && r.inside[g.id] == g
}

// sweep kills the program and all it started.
func (g *inner) sweep(deadline time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	_, _ = g.instance.ask(ctx, &spec.Request{Op: spec.OpSweep, Program: g.id}, nil, nil)
}

// pluginFolder is where a plugin puts its socket.
type pluginFolder struct {
	scratch *scratch
	// inside is the folder as programs see it.
	inside string

	mu   sync.Mutex
	open *os.File // nil when it is closed
}

// plugin creates a folder for the socket of one plugin.
func (r *instance) plugin() (*pluginFolder, error) {
	r.mu.Lock()
	r.plugins++
	name := strconv.Itoa(r.plugins)
	r.mu.Unlock()
	f, err := r.dir.socket(name)
	if err != nil {
		return nil, fmt.Errorf("make a folder for its socket: %w", err)
	}
	return &pluginFolder{scratch: r.dir, open: f, inside: spec.SocketDir + "/" + name}, nil
}

// away moves the socket of a plugin out of the folder that programs see. After
// that the socket that is checked cannot be replaced, and no other program can
// pose as the plugin. A program may end, and its folder be closed, at any moment.
func (f *pluginFolder) away(base string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		return "", fmt.Errorf("move it out of its folder: %w", os.ErrClosed)
	}
	return f.scratch.away(f.open, base)
}

func (f *pluginFolder) close() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open != nil {
		_ = f.open.Close()
		f.open = nil
	}
}
