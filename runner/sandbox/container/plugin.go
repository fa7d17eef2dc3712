package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"
)

// handshakeEnv are the prefixes of the variables of go-plugin's handshake.
// Nothing else of the command that go-plugin builds is used.
var handshakeEnv = []string{"PLUGIN_", "AGENTCTL_PLUGIN="}

// socketDirEnv is the variable with the folder for a plugin's socket.
const socketDirEnv = "PLUGIN_UNIX_SOCKET_DIR="

// termGrace is the time a plugin has between SIGTERM and SIGKILL. Its calls
// have been cancelled and waited for by then.
const termGrace = 200 * time.Millisecond

// PluginRunner returns the function with which go-plugin starts the program of
// spec in a container: the same program, the same handshake, a folder of its own
// for the socket. Stdin, Stdout and Stderr of spec are not used.
func (r *Runtime) PluginRunner(spec Spec) func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error) {
	return func(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
		env, err := greet(spec.Env, cmd.Env)
		if err != nil {
			return nil, startError(&spec, err)
		}
		s := spec
		s.Env, s.Stdin, s.socketDir = env, nil, socketDir
		p := &plugin{runtime: r, spec: s, socketDir: socketDir}
		p.outR, p.outW = io.Pipe()
		p.errR, p.errW = io.Pipe()
		return p, nil
	}
}

// greet adds the handshake's variables to the declared ones.
func greet(declared, offered []string) ([]string, error) {
	env := slices.Clone(declared)
	for _, kv := range declared {
		if isHandshake(kv) {
			name, _, _ := strings.Cut(kv, "=")
			return nil, fmt.Errorf("environment variable %s is reserved for the handshake", name)
		}
	}
	for _, kv := range offered {
		if isHandshake(kv) && !strings.HasPrefix(kv, socketDirEnv) {
			env = append(env, kv)
		}
	}
	return append(env, socketDirEnv+pluginDir), nil
}

func isHandshake(kv string) bool {
	return slices.ContainsFunc(handshakeEnv, func(p string) bool { return strings.HasPrefix(kv, p) })
}

// own changes the owner of a folder to the user of the program; no other user
// may read it.
func own(dir string, who runAs) error {
	if os.Geteuid() == int(who.uid) {
		return nil
	}
	if err := os.Chown(dir, int(who.uid), int(who.gid)); err != nil {
		return fmt.Errorf("give its socket's folder to uid %d: %w", who.uid, err)
	}
	return nil
}

// plugin is a go-plugin runner.Runner over Start.
type plugin struct {
	runtime    *Runtime
	spec       Spec
	socketDir  string
	outR, errR *io.PipeReader
	outW, errW *io.PipeWriter

	mu   sync.Mutex
	proc *Process
}

// Start implements runner.Runner.
func (p *plugin) Start(ctx context.Context) error {
	s := p.spec
	s.Stdout, s.Stderr = p.outW, p.errW
	proc, err := p.runtime.Start(ctx, s)
	if err != nil {
		p.hangUp()
		return err
	}
	p.mu.Lock()
	p.proc = proc
	p.mu.Unlock()
	go func() { // ends with the process, for which Kill and Close wait
		proc.Wait()
		p.hangUp()
	}()
	return nil
}

// hangUp gives the readers their end of file: go-plugin reads to it before it
// calls Wait.
func (p *plugin) hangUp() {
	_ = p.outW.Close()
	_ = p.errW.Close()
}

func (p *plugin) process() *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proc
}

// Wait implements runner.Runner: nil for exit code 0, an *ExitError otherwise.
func (p *plugin) Wait(ctx context.Context) error {
	proc := p.process()
	if proc == nil {
		return errNotStarted
	}
	select {
	case <-proc.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	if info := proc.Wait(); info != (ExitInfo{}) {
		return &ExitError{Info: info}
	}
	return nil
}

// Kill implements runner.Runner.
func (p *plugin) Kill(context.Context) error {
	if proc := p.process(); proc != nil {
		// No reader may be left; the last output must not delay the end.
		_ = p.outR.Close()
		proc.Kill(termGrace)
	}
	return nil
}

// ID implements runner.Runner. It is never empty: go-plugin takes an empty one
// for a plugin that needs no cleaning up.
func (p *plugin) ID() string {
	if proc := p.process(); proc != nil {
		return proc.ID()
	}
	return "not started"
}

// Name implements runner.Runner.
func (p *plugin) Name() string { return p.spec.Image }

// Stdout implements runner.Runner.
func (p *plugin) Stdout() io.ReadCloser { return p.outR }

// Stderr implements runner.Runner.
func (p *plugin) Stderr() io.ReadCloser { return p.errR }

// Diagnose implements runner.Runner; package host has better error texts.
func (p *plugin) Diagnose(context.Context) string { return "" }

// PluginToHost implements runner.Runner: the only address a plugin may name is
// a socket directly inside the folder it was given.
func (p *plugin) PluginToHost(network, addr string) (string, string, error) {
	path, err := socketPath(p.socketDir, network, addr)
	if err != nil {
		return "", "", err
	}
	// The program cannot replace a file outside its folder: a link would lead to
	// a socket of the host.
	away := p.socketDir + ".s"
	if err := os.Rename(path, away); err != nil {
		return "", "", fmt.Errorf("plugin's socket: %w", err)
	}
	path = away
	fi, err := os.Lstat(path)
	if err != nil {
		return "", "", fmt.Errorf("plugin's socket: %w", err)
	}
	if fi.Mode().Type() != os.ModeSocket {
		return "", "", fmt.Errorf("plugin's address %q is not a socket", addr)
	}
	return "unix", path, nil
}

// socketPath translates an address of the container without looking at the disk.
func socketPath(dir, network, addr string) (string, error) {
	if network != "unix" {
		return "", fmt.Errorf("plugin listens on network %q, not unix", network)
	}
	base, ok := strings.CutPrefix(addr, pluginDir+"/")
	if !ok || base == "" || base == "." || base == ".." || strings.ContainsAny(base, "/\x00") {
		return "", fmt.Errorf("plugin's address %q is not directly inside %s", addr, pluginDir)
	}
	return filepath.Join(dir, base), nil
}

// HostToPlugin implements runner.Runner. Plugins make no calls to the host, so
// it is never used.
func (p *plugin) HostToPlugin(string, string) (string, string, error) {
	return "", "", errors.New("plugins do not call back")
}
