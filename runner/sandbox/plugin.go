package sandbox

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

// termGrace is the time a plugin has between SIGTERM and SIGKILL. Its calls
// have been cancelled and waited for by then.
const termGrace = 200 * time.Millisecond

// PluginRunner returns the function with which go-plugin starts the program of
// spec: with the environment of spec, the handshake's variables and nothing
// else, no stdin, and killed as a tree. Stdout and Stderr of spec are not used.
func (l *Launcher) PluginRunner(spec Spec) func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error) {
	return func(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
		if len(spec.Argv) == 0 {
			return nil, errors.New("start a plugin: the command is empty")
		}
		env, err := greet(spec.Env, cmd.Env)
		if err != nil {
			return nil, fmt.Errorf("start plugin %s: %w", spec.Argv[0], err)
		}
		s := spec
		s.Env, s.Stdin = env, nil
		p := &plugin{launcher: l, spec: s, socketDir: socketDir}
		p.outR, p.outW = io.Pipe()
		p.errR, p.errW = io.Pipe()
		return p, nil
	}
}

// greet adds the handshake's variables to the declared ones.
func greet(declared, offered []string) ([]string, error) {
	env := append([]string{}, declared...)
	for _, kv := range declared {
		if isHandshake(kv) {
			name, _, _ := strings.Cut(kv, "=")
			return nil, fmt.Errorf("environment variable %s is reserved for the handshake", name)
		}
	}
	for _, kv := range offered {
		if isHandshake(kv) {
			env = append(env, kv)
		}
	}
	return env, nil
}

func isHandshake(kv string) bool {
	for _, p := range handshakeEnv {
		if strings.HasPrefix(kv, p) {
			return true
		}
	}
	return false
}

// plugin is a go-plugin runner.Runner over Start.
type plugin struct {
	launcher *Launcher
	spec     Spec
	// socketDir is the folder for the socket as the plugin sees it. folder is
	// the same folder, opened by the runner; nil outside a sandbox.
	socketDir  string
	folder     *pluginFolder
	outR, errR *io.PipeReader
	outW, errW *io.PipeWriter

	mu   sync.Mutex
	proc *Process
}

// Start implements runner.Runner.
func (p *plugin) Start(ctx context.Context) error {
	proc, err := p.begin(ctx)
	if err != nil {
		p.folder.close()
		p.hangUp()
		return err
	}
	p.mu.Lock()
	p.proc = proc
	p.mu.Unlock()
	go func() { // ends with the process, for which Kill waits
		proc.Wait()
		p.folder.close()
		p.hangUp()
	}()
	return nil
}

// begin starts the program; in a sandbox, with a folder that both sides see.
func (p *plugin) begin(ctx context.Context) (*Process, error) {
	s := p.spec
	s.Stdout, s.Stderr = p.outW, p.errW
	r, err := p.launcher.house(ctx, &s)
	if err != nil {
		return nil, err
	}
	if r != nil {
		if p.folder, err = r.plugin(); err != nil {
			return nil, err
		}
		p.socketDir = p.folder.inside
		// Which of two counts depends on the language: there must be one.
		s.Env = slices.DeleteFunc(slices.Clone(s.Env), func(kv string) bool { return strings.HasPrefix(kv, socketEnv) })
		s.Env = append(s.Env, socketEnv+p.socketDir)
	}
	return p.launcher.startIn(ctx, r, s)
}

// socketEnv is the variable with the path for a plugin's socket.
const socketEnv = "PLUGIN_UNIX_SOCKET_DIR="

// hangUp gives the readers their end of file. Only now may go-plugin call Wait:
// it reads to the end first, and a daemon that held the real pipe would hold it up.
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
		return errors.New("plugin was not started")
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

// ExitError is the error of a plugin that did not end with exit code 0.
type ExitError struct{ Info ExitInfo }

func (e *ExitError) Error() string { return e.Info.String() }

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
		return fmt.Sprint(proc.PID())
	}
	return "not started"
}

// Name implements runner.Runner.
func (p *plugin) Name() string { return p.spec.Argv[0] }

// Stdout implements runner.Runner.
func (p *plugin) Stdout() io.ReadCloser { return p.outR }

// Stderr implements runner.Runner.
func (p *plugin) Stderr() io.ReadCloser { return p.errR }

// Diagnose implements runner.Runner; package host has better error texts.
func (p *plugin) Diagnose(context.Context) string { return "" }

// PluginToHost implements runner.Runner: the only address a plugin may name is
// a socket directly inside the folder it was given.
func (p *plugin) PluginToHost(network, addr string) (string, string, error) {
	base, err := socketName(p.socketDir, network, addr)
	if err != nil {
		return "", "", err
	}
	path := filepath.Join(p.socketDir, base)
	if p.folder != nil {
		if path, err = p.folder.away(base); err != nil {
			return "", "", fmt.Errorf("plugin's socket: %w", err)
		}
	}
	fi, err := os.Lstat(path) // a link could lead to another program's socket
	if err != nil {
		return "", "", fmt.Errorf("plugin's socket: %w", err)
	}
	if fi.Mode().Type() != os.ModeSocket {
		return "", "", fmt.Errorf("plugin's address %q is not a socket", addr)
	}
	return "unix", path, nil
}

// socketName checks an address without looking at the disk and returns the name
// of the socket in its folder.
func socketName(dir, network, addr string) (string, error) {
	if network != "unix" {
		return "", fmt.Errorf("plugin listens on network %q, not unix", network)
	}
	base := strings.TrimPrefix(addr, dir+"/")
	if base == addr || base == "" || base == "." || base == ".." || strings.ContainsAny(base, "/\x00") {
		return "", fmt.Errorf("plugin's address %q is not directly inside %s", addr, dir)
	}
	return base, nil
}

// HostToPlugin implements runner.Runner. Plugins make no calls to the host, so
// it is never used.
func (p *plugin) HostToPlugin(string, string) (string, string, error) {
	return "", "", errors.New("plugins do not call back")
}
