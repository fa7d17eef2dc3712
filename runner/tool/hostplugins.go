package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// HostPlugins is the source of programs of this host that speak the tool protocol, each
// in a sandbox or in none. Tools with the same program share its process.
type HostPlugins struct {
	Pool *Pool
	// Program returns what is started for a tool: Argv, Sha256, Tidy and Dir; "" is the
	// working folder of the pool.
	Program func(d *Definition) (sandbox.Spec, error)
}

// Start implements Source.
func (h *HostPlugins) Start(ctx context.Context, d *Definition) {
	if d.Spec.Isolation.Fresh && d.Shipped == "" {
		return // it is started by its calls
	}
	if process, err := h.process(d); err == nil {
		process.Start(ctx)
	}
}

// Describe implements Source. A contained program is asked in a sandbox of its
// own that shows no files of the run: the policy has not yet decided which of
// them are hidden.
func (h *HostPlugins) Describe(ctx context.Context, d *Definition) ([]Function, error) {
	if h.Pool.Profile(d.Program()) == nil {
		process, err := h.process(d)
		if err != nil {
			return nil, err
		}
		run, err := process.wait(ctx)
		if err != nil {
			return nil, err
		}
		infos, err := run.plugin.Describe(ctx)
		return functions(infos), err
	}
	start, err := h.start(d)
	if err != nil {
		return nil, err
	}
	seen := *start.Profile
	seen.Workspace, seen.Access, seen.Network = "", spec.AccessNone, spec.NetworkNone // what mounts must not show stays hidden
	start.Profile, start.Fresh, start.Dir, start.Env = &seen, true, "/tmp", contained(&seen, nil)
	program := h.program(start)
	program.Launch = func(context.Context) (host.Options, error) {
		return host.Options{Launch: h.Pool.Launcher().PluginRunner(start)}, nil
	}
	return program.Functions(ctx, d)
}

// Serve implements Source. A sandbox that other calls share must not show a path outside
// the workspace: the call that may use one gets a sandbox of its own, which ends with it.
func (h *HostPlugins) Serve(ctx context.Context, d *Definition, beyond Outside) (Server, error) {
	process, err := h.process(d)
	if err != nil {
		return nil, err
	}
	seen := h.Pool.Showing(d, beyond)
	if seen == nil {
		return process.Serve(ctx, d)
	}
	start, err := h.start(d)
	if err != nil {
		return nil, err
	}
	start.Profile, start.Fresh = seen, true
	return process.ServeOnce(d, h.fenced(d, start)), nil
}

// Close implements Source.
func (h *HostPlugins) Close() error { return nil }

// process is the process behind a tool.
func (h *HostPlugins) process(d *Definition) (*Process, error) {
	if err := h.Pool.Sandboxed(d); err != nil {
		return nil, err
	}
	start, err := h.start(d)
	if err != nil {
		return nil, err
	}
	held, err := json.Marshal(start.Profile)
	if err != nil {
		return nil, fmt.Errorf("tool %q: its sandbox: %w", d.Name, err)
	}
	key := strings.Join(slices.Concat(start.Argv, []string{"", start.Sha256, string(held), ""}, start.Env), "\x00")
	return h.Pool.Process(key, d, h.fenced(d, start)), nil
}

func (h *HostPlugins) start(d *Definition) (sandbox.Spec, error) {
	start, err := h.Program(d)
	if err != nil {
		return sandbox.Spec{}, err
	}
	start.Profile, start.Fresh, start.Env = h.Pool.Profile(d.Program()), d.Spec.Isolation.Fresh, h.Pool.Environment(d.Program())
	if start.Dir == "" {
		start.Dir = StartDir(start.Profile, h.Pool.o.Dir)
	}
	return start, nil
}

// fenced is a contained program that waits, unless it is a trusted one, until it can no
// longer do to the files of the run what it must not. No guard holds a program that is
// not contained.
func (h *HostPlugins) fenced(d *Definition, start sandbox.Spec) Program {
	program := h.program(start)
	program.Launch = func(ctx context.Context) (host.Options, error) {
		if guard := h.Pool.o.Guard; guard != nil && start.Profile != nil && d.Shipped == "" {
			if _, _, err := guard(ctx); err != nil {
				return host.Options{}, err
			}
		}
		return host.Options{Launch: h.Pool.Launcher().PluginRunner(start)}, nil
	}
	return program
}

func (h *HostPlugins) program(start sandbox.Spec) Program {
	return Program{Name: start.Argv[0], Hint: func() string { return pluginHint(start.Argv[0]) }}
}

// InSight are the programs of the host that a program in a sandbox sees.
const InSight = "its own file, /usr, and what spec.isolation.mounts of the Tool names (an interpreter elsewhere, for example)"

// pluginHint is the hint for a plugin that does not start.
func pluginHint(path string) string {
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "there is no such file: build or install the program, or mend spec.source.plugin.command of the Tool, which counts from its manifest"
	} else if err == nil && (info.IsDir() || info.Mode().Perm()&0o111 == 0) {
		return "the file cannot be run: make it executable (chmod +x), or name the program in spec.source.plugin.command of the Tool"
	}
	return "try it with agentctl plugin test " + path + " --isolation Sandbox; in a sandbox it sees " + InSight
}
