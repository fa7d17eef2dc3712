// Package sandbox starts every program a run needs, as tightly contained as this host can, and ends it as a tree.
//
// It is the one place in runner that starts programs. In this version the only
// level is None: own session and process group, exactly the declared
// environment, no terminal, no host stdin, death with the runner. What a
// program can still do at this level: read and write whatever its user may,
// reach the network, and escape the tree kill by two deliberate steps at once
// (detaching from its parents and lowering an rlimit; see tree_linux.go). When
// the runner is killed with SIGKILL the program dies with it; what the program
// started may then live on until its own pipes break, unless the program is Tidy.
package sandbox

import (
	"errors"
	"sync"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// OuterContainer is the one value of AGENTCTL_OUTER_ISOLATION: this machine is
// itself a container that nobody minds losing.
const OuterContainer = "container"

// Options say what the user declared about this host.
type Options struct {
	// AllowUnsandboxed lets tools that ask for Sandbox run at level None.
	AllowUnsandboxed bool
	// Outer is the value of AGENTCTL_OUTER_ISOLATION: "" or "container".
	Outer string
}

// Launcher starts programs. Its children die when it is closed or its process
// ends, whatever the reason.
type Launcher struct {
	opts Options
	sums sums

	mu     sync.Mutex
	closed bool
	work   chan func()
	thread sync.WaitGroup
	live   map[*Process]struct{}
}

// New returns a Launcher. It starts nothing; Close it when nothing is to be
// started any more.
func New(opts Options) *Launcher {
	return &Launcher{opts: opts, live: map[*Process]struct{}{}}
}

// errClosed is returned by Start after Close.
var errClosed = errors.New("launcher is closed")

// Level returns the tightest level this host gives.
func (l *Launcher) Level() v1alpha1.IsolationLevel { return v1alpha1.IsolationNone }

// Require says whether a tool may run here:
//
//	minimum     network   declared                      outcome
//	None        None,Host any                           nil
//	Sandbox     None,Host allowed, or outer container   nil: the user answers for the containment
//	Sandbox     None,Host nothing                       IsolationUnavailable
//	Container   any       any                           IsolationUnavailable
//	any         Proxy     any                           IsolationUnavailable: there is no proxy yet
//	any other   any       any                           IsolationUnavailable
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
		return reason.New(reason.IsolationUnavailable, "tool %q needs network mode Proxy, but this version has no proxy", tool).
			WithHint("set spec.network.mode: Host in the Tool to give it the host's network, or None")
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
			return nil
		}
		return reason.New(reason.IsolationUnavailable, "tool %q needs isolation Sandbox, but this host gives %s", tool, l.Level()).
			WithHint("pass --allow-unsandboxed to run it without containment, set AGENTCTL_OUTER_ISOLATION=%s if this machine is itself a throw-away container, or set spec.isolation.minimum: None in the Tool", OuterContainer)
	case v1alpha1.IsolationContainer:
		return reason.New(reason.IsolationUnavailable, "tool %q needs isolation Container, but this host gives %s: this version starts no containers", tool, l.Level()).
			WithHint("set spec.isolation.minimum: Sandbox or None in the Tool")
	}
	return reason.New(reason.IsolationUnavailable, "tool %q needs isolation %q, which is unknown", tool, minimum).
		WithHint("spec.isolation.minimum is None, Sandbox or Container")
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
	l.mu.Unlock()

	var wg sync.WaitGroup
	for _, p := range ps {
		wg.Go(func() { p.Kill(0) })
	}
	wg.Wait()
	if work != nil {
		close(work)
	}
	l.thread.Wait()
	return nil
}
