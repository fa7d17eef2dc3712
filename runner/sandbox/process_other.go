//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"time"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

var errLinux = errors.New("agents run on Linux only")

func (p *Process) start(context.Context, *Launcher, *instance, Spec, string) error { return errLinux }

func (p *Process) reap() ExitInfo { return ExitInfo{Code: -1} }

func (p *Process) terminate() {}

func (p *Process) sweep(time.Time) {}

// instance, inner and protection are for Linux only.
type instance struct{ unenforced []string }

type inner struct {
	instance *instance
	pid      int
	fresh    bool
}

type protection struct{}

type spare struct{}

// Prepare starts nothing where nothing runs.
func (l *Launcher) Prepare() {}

func (l *Launcher) discard() {}

func (g *inner) last() bool { return false }

func (l *Launcher) instance(context.Context, *Spec, string) (*instance, error) { return nil, errLinux }

type pluginFolder struct{ inside string }

func (r *instance) plugin() (*pluginFolder, error) { return nil, errLinux }

func (f *pluginFolder) away(string) (string, error) { return "", errLinux }

func (f *pluginFolder) close() {}

func (r *instance) stop() {}

func (l *Launcher) cachedProbe() probed {
	return probed{Missing: errLinux.Error(), Hint: "run agentctl on Linux"}
}

// Probe lists the parts of the containment.
func (l *Launcher) Probe(context.Context) []Control {
	return []Control{{Name: "sandbox", Needed: true, Why: errLinux.Error(), Hint: "run agentctl on Linux"}}
}

// Unrecorded is why what calls do cannot be recorded here.
func Unrecorded() string { return errLinux.Error() }

// Unbound is why no call can be bound here.
func Unbound() string { return errLinux.Error() }

// Protect does nothing where nothing runs.
func (l *Launcher) Protect(context.Context, []string, []string) error { return nil }

// ScratchDir returns "": without sandboxes there is no such folder.
func ScratchDir() string { return "" }

// Escape makes no attempts where there is no sandbox.
func (l *Launcher) Escape(context.Context) ([]spec.Attempt, error) { return nil, errLinux }
