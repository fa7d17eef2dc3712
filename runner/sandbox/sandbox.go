// Package sandbox starts every program a run needs, as tightly contained as this host can, and ends it as a tree.
//
// The programs of a run are started only here and in the subpackages. Level
// None is a session and a process group of its own, exactly the declared
// environment, no terminal and no host stdin; the program is killed when the
// runner ends. What a program can still do there: read and write whatever its
// user may, reach the network, and escape the tree kill by two deliberate steps
// at once (detaching from its parents and lowering an rlimit; see
// tree_linux.go). When the runner is killed with SIGKILL the program is killed,
// too; what the program started may continue until its own pipes break, unless
// the program is Tidy.
//
// Level Sandbox is a Spec with a Profile: the program runs in a instance
// sandbox that agentctl-sandbox builds and whose init it stays. Programs of
// equal profiles share it (instance_linux.go). It is killed as a whole when the
// runner ends.
package sandbox

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// OuterIsolationEnv declares that this machine is itself a container.
const OuterIsolationEnv = "AGENTCTL_OUTER_ISOLATION"

// OuterIsolation is what the environment declares; "" is nothing.
func OuterIsolation() string { return os.Getenv(OuterIsolationEnv) }

// OuterContainer is the one value of AGENTCTL_OUTER_ISOLATION: this machine is
// itself a disposable container.
const OuterContainer = "container"

// Options are what the user declared about this host, and what a sandbox needs.
type Options struct {
	// AllowUnsandboxed lets tools that ask for Sandbox run at level None where
	// this host does not support a sandbox.
	AllowUnsandboxed bool
	// Outer is the value of AGENTCTL_OUTER_ISOLATION: "" or "container".
	Outer string
	// Helper is the path of agentctl-sandbox; "": it is found by FindProgram.
	Helper string
	// State is a folder in which the result of the probe is kept until the next
	// boot; "" probes again in each process.
	State string
	// TempDir holds a folder for each sandbox, with its sockets; "" is the
	// system's. It must be short: a socket's path ends at 107 bytes.
	TempDir string
	// Serve serves the proxy's listener of a sandbox with spec.NetworkProxy
	// until its context ends, and returns when all it started has ended. The
	// profile has the allow list. nil: there is no proxy, and tools that need
	// one are refused.
	Serve func(ctx context.Context, l net.Listener, p *spec.Profile)
	// Lacks is called when a sandbox has been built, with the declared limits
	// that this host does not enforce in it. Optional.
	Lacks func(p *spec.Profile, limits []string)
	// Exceeded is called when programs of a sandbox without a cgroup were killed
	// because all processes in it took more bytes than its memory limit.
	// Optional.
	Exceeded func(p *spec.Profile, taken int64)
}

// Launcher starts programs. Its children are killed when it is closed or its
// process ends, whatever the reason.
type Launcher struct {
	opts  Options
	sums  sums
	probe func() probed

	mu        sync.Mutex
	closed    bool
	work      chan func()
	thread    sync.WaitGroup
	live      map[*Process]struct{}
	instances map[string]*instance
	// protected are the paths of Protect, for sandboxes that come later.
	protected []protection
	fresh     int
	// spare is a helper that was started ahead, or nil.
	spare *spare
	// retired is set when no program is started any more.
	retired bool
	sweep   sync.Once
	tidy    sync.WaitGroup
}

// New returns a Launcher. It starts nothing. Close it after the last program.
func New(opts Options) *Launcher {
	l := &Launcher{opts: opts, live: map[*Process]struct{}{}, instances: map[string]*instance{}}
	l.probe = sync.OnceValue(l.cachedProbe)
	return l
}

// errClosed is returned by Start after Close.
var errClosed = errors.New("launcher is closed")

// Level returns the tightest level this host gives. The first call of a boot
// takes some 10 ms: it is found out by doing it.
func (l *Launcher) Level() v1alpha1.IsolationLevel {
	if l.probe().Missing == "" {
		return v1alpha1.IsolationSandbox
	}
	return v1alpha1.IsolationNone
}

// Grant returns the level at which a tool with this minimum runs here, when
// Require has accepted it: Sandbox wherever the host gives it, except for a tool
// that asks for None.
func (l *Launcher) Grant(minimum v1alpha1.IsolationLevel) v1alpha1.IsolationLevel {
	if minimum == v1alpha1.IsolationNone {
		return v1alpha1.IsolationNone
	}
	return l.Level()
}

// Require returns an error if a tool may not run here:
//
//	minimum     network     host and user                 outcome
//	None        None,Host   any                           nil
//	Sandbox     None,Host   host gives Sandbox            nil
//	Sandbox     None,Host   allowed, or outer container   nil: the user answers for the containment
//	Sandbox     None,Host   nothing                       IsolationUnavailable
//	Sandbox     Proxy       host gives Sandbox            nil
//	any other   Proxy       any                           IsolationUnavailable: the proxy needs an empty network
//	Container   any         any                           IsolationUnavailable
//	any other   any         any                           IsolationUnavailable
//
// A wrong value of AGENTCTL_OUTER_ISOLATION fails every tool: a misspelt
// declaration must not pass for none.
func (l *Launcher) Require(tool string, minimum v1alpha1.IsolationLevel, network v1alpha1.NetworkMode) error {
	if l.opts.Outer != "" && l.opts.Outer != OuterContainer {
		return reason.New(reason.IsolationUnavailable, "tool %q: AGENTCTL_OUTER_ISOLATION is %q, which says nothing about this host", tool, l.opts.Outer).
			WithHint("the only value is AGENTCTL_OUTER_ISOLATION=%s; unset it when this host is none", OuterContainer)
	}
	if err := l.requireLevel(tool, minimum); err != nil {
		return err
	}
	switch network {
	case "", v1alpha1.NetworkNone, v1alpha1.NetworkHost:
		return nil
	case v1alpha1.NetworkProxy:
		if l.opts.Serve != nil && l.Grant(minimum) == v1alpha1.IsolationSandbox {
			return nil
		}
		return reason.New(reason.IsolationUnavailable, "tool %q needs network mode Proxy, but runs at level %s here, where nothing makes it use the proxy", tool, l.Grant(minimum)).
			WithHint("set spec.isolation.minimum: Sandbox on a host that gives it (see agentctl doctor), or spec.network.mode: Host to give the tool the host's network, or None")
	}
	return reason.New(reason.IsolationUnavailable, "tool %q needs network mode %q, which is unknown", tool, network).
		WithHint("spec.network.mode is None, Proxy or Host")
}

func (l *Launcher) requireLevel(tool string, minimum v1alpha1.IsolationLevel) error {
	switch minimum {
	case v1alpha1.IsolationNone:
		return nil
	case "", v1alpha1.IsolationSandbox:
		if l.opts.AllowUnsandboxed || l.opts.Outer == OuterContainer {
			return nil // without asking the host: it is not needed
		}
		p := l.probe()
		if p.Missing == "" {
			return nil
		}
		return reason.New(reason.IsolationUnavailable, "tool %q needs isolation Sandbox, but this host gives None: %s", tool, p.Missing).
			WithHint("%s; or pass --allow-unsandboxed to run it without containment, set AGENTCTL_OUTER_ISOLATION=%s if this machine is itself a throw-away container, or set spec.isolation.minimum: None in the Tool", p.Hint, OuterContainer)
	case v1alpha1.IsolationContainer:
		return reason.New(reason.IsolationUnavailable, "tool %q needs isolation Container, but this host gives %s: this version starts no containers", tool, l.Level()).
			WithHint("set spec.isolation.minimum: Sandbox or None in the Tool")
	}
	return reason.New(reason.IsolationUnavailable, "tool %q needs isolation %q, which is unknown", tool, minimum).
		WithHint("spec.isolation.minimum is None, Sandbox or Container")
}

// Retire refuses new programs. Running programs continue until each is killed;
// a Tidy program that is the last of its sandbox then needs no time to end by
// itself.
func (l *Launcher) Retire() {
	l.mu.Lock()
	l.retired = true
	l.mu.Unlock()
}

// Busy reports whether a program still runs, or what it left has not been
// swept.
func (l *Launcher) Busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.live) > 0
}

// Close kills every program that still runs and waits for the end of each.
func (l *Launcher) Close() error {
	l.mu.Lock()
	l.closed = true
	work := l.work
	l.work = nil
	var ps []*Process
	for p := range l.live {
		ps = append(ps, p)
	}
	rs := slices.Collect(maps.Values(l.instances))
	l.mu.Unlock()

	var wg sync.WaitGroup
	wg.Go(l.discard)
	for _, r := range rs { // first: each takes its programs along
		wg.Go(r.stop)
	}
	wg.Wait()
	for _, p := range ps {
		wg.Go(func() { p.Kill(0) })
	}
	wg.Wait()
	if work != nil {
		close(work)
	}
	l.thread.Wait()
	l.tidy.Wait()
	return nil
}
