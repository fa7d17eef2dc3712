package environment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentctl.dev/agentctl/runner/coder"
	"agentctl.dev/agentctl/runner/coder/installed"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// versionTime bounds how long a program takes to say its version.
const versionTime = 60 * time.Second

// version returns the version of the program, and refuses another than is declared: its
// command line and its events may be others.
func (c *coding) version(ctx context.Context) (string, error) {
	want := c.task.Program.Version
	files, memory := c.installed(ctx), installed.Memory{Dir: filepath.Join(c.t.env.host.State, "cache", "coders")}
	if memory.Version(files) == want {
		return want, nil
	}
	version, err := c.said(ctx)
	if err != nil {
		return "", err
	}
	_ = memory.Keep(ctx, files, packages(c.program), version) // what is not kept is asked again
	if version != want {
		return "", fmt.Errorf("%s is version %q, and %q is expected: %s installs the version that was tested, or write version in spec.source.builtin.coding.programs of the Tool",
			c.program, version, want, c.driver.Install)
	}
	return version, nil
}

// installed are the files of the program, if nothing but them decides which version runs: what
// a Tool sets or mounts may do so, too, and without a sandbox whatever is on this host.
func (c *coding) installed(ctx context.Context) installed.Program {
	if c.held == nil || len(c.d.Spec.Env) > 0 || len(c.d.Spec.Isolation.Mounts) > 0 {
		return installed.Program{}
	}
	p, err := installed.Look(ctx, c.program, packages(c.program))
	if err != nil {
		return installed.Program{}
	}
	return p
}

// said asks the program for its version, once in a run for each tool and file.
func (c *coding) said(ctx context.Context) (string, error) {
	info, err := os.Stat(c.program)
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%s %s %d %d", c.d.Name, c.program, info.Size(), info.ModTime().UnixNano())
	h := c.t.env.host
	if found, known := h.versions.Load(key); known {
		return found.(string), nil //nolint:forcetypeassert // nothing else is stored
	}
	version, err := c.ask(ctx)
	if err == nil {
		h.versions.Store(key, version)
	}
	return version, err
}

// ask runs the program with --version, in a sandbox that shows it nothing.
func (c *coding) ask(ctx context.Context) (string, error) {
	var held *spec.Profile
	dir := c.home // the copy is being made
	if c.held != nil {
		dir = "/tmp"
		seen := *c.held
		seen.Workspace, seen.Access, seen.Network, seen.Group = "", spec.AccessNone, spec.NetworkNone, c.held.Group+"/version"
		held = &seen
	}
	var out, errs beginning
	p, err := c.start(ctx, held, dir, coder.Start{Args: []string{"--version"}, Env: []string{"HOME=" + c.seen}}, &out, &errs)
	if err != nil {
		return "", err
	}
	late := time.NewTimer(versionTime)
	defer late.Stop()
	select {
	case <-p.Done():
	case <-late.C:
		p.Kill(0)
		return "", fmt.Errorf("%s --version has not ended within %s", c.program, versionTime)
	case <-ctx.Done():
		p.Kill(0)
		return "", context.Cause(ctx)
	}
	if e := p.Wait(); e != (coder.Exit{}) {
		return "", fmt.Errorf("%s --version ended with %s: %s", c.program, e, coder.Tail(strings.TrimSpace(errs.String())))
	}
	version := c.driver.Version(out.String())
	if version == "" {
		return "", fmt.Errorf("%s --version does not name a version of %s: %q", c.program, c.driver.Name, coder.Clip(out.String(), 80))
	}
	return version, nil
}

// beginning keeps the first bytes of what a program prints.
type beginning struct{ kept []byte }

// Write implements io.Writer.
func (b *beginning) Write(p []byte) (int, error) {
	const most = 64 << 10
	b.kept = append(b.kept, p[:min(len(p), most-len(b.kept))]...)
	return len(p), nil
}

func (b *beginning) String() string { return string(b.kept) }
