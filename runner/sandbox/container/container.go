// Package container runs tools in containers of this host's containerd, each as tightly contained as the daemon allows, and leaves none of them behind.
//
// A Runtime is one connection to one containerd. Start runs a program in a fresh
// container, PluginRunner does it for go-plugin, Hold keeps a container in which
// programs are started by call. The first process of each container is
// agentctl-entry (see package entry): it carries the declared variables past the
// spec, which containerd keeps on disk. Nothing is pulled by a tag, nothing runs
// as root, and what a killed runner left is swept by the next one.
package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/log"
	"github.com/sirupsen/logrus"
)

// DefaultNamespace is containerd's namespace of everything that agentctl
// creates.
const DefaultNamespace = "agentctl"

// Options are what a Runtime needs.
type Options struct {
	// Address of containerd's socket, see Address. Default DefaultAddress.
	Address string
	// Namespace inside containerd. Default DefaultNamespace.
	Namespace string
	// StateDir is an absolute folder; pipes, sockets and generated files are in
	// a folder of this runtime below it. Required.
	StateDir string
	// Entry is the path of agentctl-entry. Required, static and absolute.
	Entry string
	// Owner is the owner in the labels of the containers. Default Self(): this
	// process.
	Owner string
	// Launches bounds how many containers are being created at once; more at a
	// time are not faster. Default: the number of cores.
	Launches int
	// CloseTime bounds how long Close waits for deletions that are under way.
	// Default 2 s.
	CloseTime time.Duration
	// Log receives failures that no caller waits for: a failed deletion, a slow
	// snapshotter. Default: they are discarded.
	Log *slog.Logger
}

// Runtime is one containerd. It connects when it is first needed.
type Runtime struct {
	opts  Options
	slots chan struct{}
	shelf shelf
	maps  idmaps

	// stopped ends when Close has waited long enough; work that outlives a
	// caller's context uses it.
	stopped context.Context //nolint:containedctx // the lifetime of the runtime itself
	stop    context.CancelFunc
	// Only Close waits for cleanups, the pending deletions. watchers are the
	// goroutines that run as long as the runtime.
	cleanups sync.WaitGroup
	watchers sync.WaitGroup

	mu     sync.Mutex
	closed bool
	daemon *daemon
	info   Info
	dirs   *dirs
	live   map[string]*Process
	heard  bool // of containers that run out of memory
}

// New returns a Runtime. It starts and connects to nothing; Close it.
func New(opts Options) (*Runtime, error) {
	if opts.Address == "" {
		opts.Address = DefaultAddress
	}
	if opts.Namespace == "" {
		opts.Namespace = DefaultNamespace
	}
	if opts.Owner == "" {
		owner, err := Self()
		if err != nil {
			return nil, err
		}
		opts.Owner = owner
	}
	if opts.CloseTime <= 0 {
		opts.CloseTime = closeTime
	}
	if opts.Launches <= 0 {
		opts.Launches = runtime.NumCPU()
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	for name, path := range map[string]string{"containerd's address": opts.Address, "the state folder": opts.StateDir, "agentctl-entry": opts.Entry} {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("containers: %s %q is not an absolute path", name, path)
		}
	}
	r := &Runtime{opts: opts, slots: make(chan struct{}, opts.Launches), live: map[string]*Process{}}
	r.stopped, r.stop = context.WithCancel(quiet(namespaces.WithNamespace(context.Background(), opts.Namespace)))
	r.shelf.byRef = map[string]*imageCall{}
	r.maps.fds = map[runAs]*os.File{}
	return r, nil
}

// errClosed is returned by everything after Close.
var errClosed = errors.New("containers: the runtime is closed")

// context adds containerd's namespace to a caller's context.
func (r *Runtime) context(ctx context.Context) context.Context {
	return quiet(namespaces.WithNamespace(ctx, r.opts.Namespace))
}

// quiet keeps containerd's client from writing to this process's standard
// error; the same messages come back as errors.
func quiet(ctx context.Context) context.Context {
	return log.WithLogger(ctx, logrus.NewEntry(&logrus.Logger{Out: io.Discard, Formatter: &logrus.TextFormatter{}, Hooks: logrus.LevelHooks{}, Level: logrus.PanicLevel}))
}

// connected returns the daemon, connecting first if need be.
func (r *Runtime) connected(ctx context.Context) (*daemon, error) {
	if _, err := r.Probe(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	closed, d := r.closed, r.daemon
	r.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	return d, d.revive(ctx, r.opts.Address)
}

// slot waits for leave to create a container.
func (r *Runtime) slot(ctx context.Context) (release func(), err error) {
	select {
	case r.slots <- struct{}{}:
		return func() { <-r.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

const closeTime = 2 * time.Second

// Close kills the programs that still run, waits at most CloseTime for
// deletions, and removes the folders of this runtime. An error names what is
// left; a later Sweep removes it.
func (r *Runtime) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	var ps []*Process
	for _, p := range r.live {
		ps = append(ps, p)
	}
	d, dirs := r.daemon, r.dirs
	r.mu.Unlock()

	var kills sync.WaitGroup
	for _, p := range ps {
		kills.Go(func() { p.Kill(0) })
	}
	kills.Wait()
	gone := make(chan struct{})
	go func() { // ends at the latest by r.stop, which cancels every deletion
		r.cleanups.Wait()
		close(gone)
	}()
	var errs []error
	late := time.NewTimer(r.opts.CloseTime)
	defer late.Stop()
	select {
	case <-gone:
	case <-late.C:
		errs = append(errs, fmt.Errorf("containers: deletions took over %v; a later run sweeps them", r.opts.CloseTime))
	}
	r.stop()
	<-gone
	r.watchers.Wait()
	r.maps.close()
	if d != nil {
		errs = append(errs, d.conn.Close())
	}
	if dirs != nil && len(errs) < 2 { // what is left is found by its folder
		errs = append(errs, dirs.remove())
	}
	return errors.Join(errs...)
}

// Namespace returns containerd's namespace of everything made here.
func (r *Runtime) Namespace() string { return r.opts.Namespace }
