// Package environment builds what the calls of a run work in: its files, the sandboxes and containers of its tools, and their processes.
//
// Its values are made in this order, each complete when it is returned:
//
//   - Host starts programs on this machine. It exists before the run has a journal, so
//     that slow programs start early: an Ahead is what has been started.
//   - Environment is opened by the host when the run begins: the secrets are known, and
//     the files are there or on their way.
//   - Tools are those of the run with what their programs report about them.
//   - Toolbox checks and executes calls, once a judge says which files they may see.
//
// A run whose environment could not be opened is ended with an Unopened.
package environment

import (
	"context"
	"errors"
	"slices"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/spec"
	"agentctl.dev/agentctl/runner/statedir"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// HostOptions configure how programs are started.
type HostOptions struct {
	// Kinds of tool sources. Required where there are tools.
	Kinds tool.Kinds
	// State is the folder that holds runs. No tool sees it.
	State string
	// Keys is the state folder whose stored keys are used; "" is State.
	Keys string
	// AllowUnsandboxed runs tools that ask for a sandbox without one.
	AllowUnsandboxed bool
	// Containerd is the socket of containerd; "" is the default.
	Containerd string
}

// Host starts the programs of one run on this machine. Close it.
type Host struct {
	HostOptions
	launcher *sandbox.Launcher
	site     *tool.Site
	report   report

	// endpoints are the model servers of the sandboxes that have one, by the group of their
	// profile; versions are what programs have said that they are, by their file.
	endpoints, versions sync.Map

	mu    sync.Mutex
	pools []*tool.Pool
}

// NewHost returns a Host that has started nothing.
func NewHost(o HostOptions) *Host {
	h := &Host{HostOptions: o}
	h.launcher = sandbox.New(sandbox.Options{
		AllowUnsandboxed: o.AllowUnsandboxed, Outer: sandbox.OuterIsolation(), State: sandbox.ScratchDir(),
		Serve: h.serveSandbox, Lacks: h.unenforced, Exceeded: h.exceeded,
	})
	h.site = tool.NewSite(tool.SiteOptions{
		Kinds: o.Kinds, Launcher: h.launcher, Containerd: o.Containerd, State: o.State, Unseen: hidden(o.State), Egress: h.serve,
	})
	return h
}

// Level is the isolation that the host supports.
func (h *Host) Level() v1alpha1.IsolationLevel { return h.launcher.Level() }

// Prepare creates a sandbox ahead of its first use.
func (h *Host) Prepare() { h.launcher.Prepare() }

// RequireSandboxes refuses a run before anything has run when a sandbox or a network that
// a tool demands is not available.
func (h *Host) RequireSandboxes(tools []tool.Definition) error { return h.site.Contain(tools) }

// Ahead is what a host has started before the run had a journal. The environment that is
// opened with it takes it over.
type Ahead struct {
	profiles map[string]*spec.Profile
	pool     *tool.Pool
}

// StartShipped begins to start the program of the shipped tools, if everything that the
// tools and checks demand can be isolated here. Errors are reported when the run begins: nil is
// nothing that was started.
func (h *Host) StartShipped(ctx context.Context, tools []tool.Definition, checks []tool.Check, files workspace.Spec) *Ahead {
	programs := slices.Concat(tools, tool.Programs(checks))
	if h.RequireSandboxes(programs) != nil {
		return nil
	}
	profiles, err := h.profiles(programs, files)
	if err != nil {
		return nil
	}
	a := &Ahead{profiles: profiles, pool: h.pool(tool.PoolOptions{Profiles: profiles})}
	a.pool.StartShipped(ctx, tools)
	return a
}

// profiles are how the tools are isolated, on a host that can do it: nil on one that
// cannot, where RequireSandboxes has refused whatever must not run without.
func (h *Host) profiles(tools []tool.Definition, files workspace.Spec) (map[string]*spec.Profile, error) {
	if h.launcher.Level() != v1alpha1.IsolationSandbox {
		return nil, nil
	}
	return tool.Profiles(tools, tool.Place{Workspace: Root(files), Masked: h.site.Options().Unseen})
}

// pool makes every pool of the host, which closes them.
func (h *Host) pool(o tool.PoolOptions) *tool.Pool {
	o.Site = h.site
	p := tool.NewPool(o)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pools = append(h.pools, p)
	return p
}

// hidden are the folders of agentctl itself: in one of them a tool could read journals
// and answer for the person who approves, in the other reach the sockets of other tools.
func hidden(state string) []string {
	dirs := []string{state}
	if scratch := sandbox.ScratchDir(); scratch != "" {
		dirs = append(dirs, statedir.Resolve(scratch))
	}
	return dirs
}

// EndPrograms returns when no program of the run is left. What then remains of their
// sandboxes is removed beside other work; the function waits for that.
func (h *Host) EndPrograms() (removed func() error) {
	h.launcher.Retire()
	if err := h.each((*tool.Pool).Close); err != nil || h.site.Opened(v1alpha1.IsolationContainer) || h.launcher.Busy() {
		err = h.Close()
		return func() error { return err }
	}
	done := make(chan error, 1)
	go func() { done <- h.Close() }()
	return func() error { return <-done }
}

// Kill ends every program at once.
func (h *Host) Kill() { _ = h.launcher.Close() }

// Close ends every program and removes the sandboxes and containers.
func (h *Host) Close() error {
	h.launcher.Retire()
	// The launcher kills what a pool could not end.
	_ = h.each((*tool.Pool).Close)
	return errors.Join(h.launcher.Close(), h.each((*tool.Pool).Release), h.site.Close())
}

// each calls a method of every pool.
func (h *Host) each(method func(*tool.Pool) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, p := range h.pools {
		errs = append(errs, method(p))
	}
	return errors.Join(errs...)
}
