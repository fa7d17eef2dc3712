package sdktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"
)

// Launch starts a program with exactly env and the handshake's variables, in
// dir, with an empty stdin and in a process group of its own. It is enough to
// test a program; agentctl itself contains one better.
func Launch(command, env []string, dir string) func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error) {
	return func(_ hclog.Logger, offer *exec.Cmd, sockets string) (runner.Runner, error) {
		if len(command) == 0 {
			return nil, errors.New("the command is empty")
		}
		c := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the test names it, Kill ends it
		c.Dir = dir
		c.Env = append(append([]string{}, env...), offer.Env...)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		l := &launched{cmd: c, sockets: sockets, done: make(chan struct{})}
		l.outR, l.outW = io.Pipe()
		l.errR, l.errW = io.Pipe()
		c.Stdout, c.Stderr = l.outW, l.errW
		return l, nil
	}
}

type launched struct {
	cmd        *exec.Cmd
	sockets    string
	outR, errR *io.PipeReader
	outW, errW *io.PipeWriter

	mu      sync.Mutex
	started bool
	done    chan struct{}
	err     error
}

func (l *launched) Start(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.cmd.Start(); err != nil {
		return err
	}
	l.started = true
	go func() {
		l.err = name(l.cmd.Wait())
		_ = l.outW.Close()
		_ = l.errW.Close()
		close(l.done)
	}()
	return nil
}

// name describes the end of a program as agentctl's launcher does.
func name(err error) error {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		if ws, ok := e.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return fmt.Errorf("signal %s", ws.Signal())
		}
		return fmt.Errorf("exit code %d", e.ExitCode())
	}
	return err
}

func (l *launched) Wait(ctx context.Context) error {
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// termGrace is the time between SIGTERM and SIGKILL, as agentctl grants it.
const termGrace = 200 * time.Millisecond

func (l *launched) Kill(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started {
		_ = l.outR.Close()
		if ctx.Err() == nil {
			_ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGTERM)
			late := time.NewTimer(termGrace)
			defer late.Stop()
			select {
			case <-l.done:
			case <-ctx.Done():
			case <-late.C:
			}
		}
		_ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL)
		select {
		case <-l.done:
		case <-ctx.Done():
		}
	}
	return nil
}

func (l *launched) Stdout() io.ReadCloser           { return l.outR }
func (l *launched) Stderr() io.ReadCloser           { return l.errR }
func (l *launched) Name() string                    { return l.cmd.Path }
func (l *launched) ID() string                      { return "test" }
func (l *launched) Diagnose(context.Context) string { return "" }

func (l *launched) PluginToHost(network, addr string) (string, string, error) {
	if network != "unix" || filepath.Dir(addr) != l.sockets {
		return "", "", fmt.Errorf("address %s %q is not a socket in %s", network, addr, l.sockets)
	}
	return network, addr, nil
}

func (l *launched) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// runs reports whether a process exists and is not a zombie.
func runs(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}
