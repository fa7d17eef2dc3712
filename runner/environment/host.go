// Package environment builds what the calls of a run work in: its files, the sandboxes and containers of its tools, and their processes.
package environment

import (
	"context"
	"errors"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox"
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
	// AllowUnsandboxed runs tools that ask for a sandbox without one.
	AllowUnsandboxed bool
	// Containerd is the socket of containerd; "" is the default.
	Containerd string
}

// Host starts the programs of one run on this machine. It exists before the run has a
// journal, so that slow programs start early. Close it.
type Host struct {
	HostOptions
	launcher *sandbox.Launcher
	pool     *tool.Pool
	report   report
}

// NewHost returns a Host that has started nothing.
func NewHost(o HostOptions) *Host {
	h := &Host{HostOptions: o}
	h.launcher = sandbox.New(sandbox.Options{
		AllowUnsandboxed: o.AllowUnsandboxed, Outer: sandbox.OuterIsolation(), State: sandbox.ScratchDir(),
		Serve: h.serveSandbox, Lacks: h.unenforced, Exceeded: h.exceeded,
	})
	h.pool = tool.NewPool(tool.PoolOptions{Kinds: o.Kinds, Launcher: h.launcher})
	return h
}

// Level is the isolation that the host supports.
func (h *Host) Level() v1alpha1.IsolationLevel { return h.launcher.Level() }

// Prepare creates a sandbox ahead of its first use.
func (h *Host) Prepare() { h.launcher.Prepare() }

// StartShipped begins to start the program of the shipped tools, if everything that the
// tools demand can be isolated here. Errors are reported when the run begins.
func (h *Host) StartShipped(ctx context.Context, tools []tool.Definition, files workspace.Spec) {
	if h.RequireSandboxes(tools) == nil && h.isolate(tools, files) == nil {
		h.pool.StartShipped(ctx, tools)
	}
}

// RequireSandboxes refuses a run before anything has run when a sandbox or a network that
// a tool demands is not available.
func (h *Host) RequireSandboxes(tools []tool.Definition) error { return h.pool.Contain(tools) }

// isolate configures how the tools are isolated, on a host that can do it.
func (h *Host) isolate(tools []tool.Definition, files workspace.Spec) error {
	if h.pool.Profiles != nil || h.launcher.Level() != v1alpha1.IsolationSandbox {
		return nil // RequireSandboxes has refused whatever must not run without
	}
	profiles, err := tool.Profiles(tools, tool.Place{Workspace: Root(files), Masked: h.hidden()})
	if err == nil { // all or none: a tool without a profile would run without a sandbox
		h.pool.Profiles = profiles
	}
	return err
}

// hidden are the folders of agentctl itself: in one of them a tool could read journals
// and answer for the person who approves, in the other reach the sockets of other tools.
func (h *Host) hidden() []string {
	dirs := []string{h.State}
	if scratch := sandbox.ScratchDir(); scratch != "" {
		dirs = append(dirs, statedir.Resolve(scratch))
	}
	return dirs
}

// endPrograms returns when no program is left. What then remains of their sandboxes is
// removed beside other work; the function waits for that.
func (h *Host) endPrograms() (removed func() error) {
	h.launcher.Retire()
	if err := h.pool.Close(); err != nil || h.pool.Opened(v1alpha1.IsolationContainer) || h.launcher.Busy() {
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
	// The launcher kills what the pool could not end.
	_ = h.pool.Close()
	return errors.Join(h.launcher.Close(), h.pool.Release())
}
