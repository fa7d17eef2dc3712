package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"agentctl.dev/agentctl/runner/control/controltest"
)

// breakEnv names a part of a server that breaks when it is ready.
const breakEnv = "EMBEDDED_TEST_BREAK"

// child serves a state folder until a signal; it says "ready" on standard output.
func child(state string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := Start(ctx, Options{State: state, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Fprintln(os.Stderr, "refused:", err)
		return 1
	}
	fmt.Println("ready")
	switch os.Getenv(breakEnv) {
	case "listener":
		_ = s.listener.Close()
	case "database":
		s.database.etcd.Server.HardStop()
	}
	select {
	case <-ctx.Done():
	case <-s.Done():
		fmt.Fprintln(os.Stderr, "failed:", s.Err())
	}
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop:", err)
		return 1
	}
	return 0
}

// patient is the time after which something hangs. Nothing here is slow when it
// takes less: machines are busy.
const patient = 2 * time.Minute

// process is a server in a process of its own.
type process struct {
	cmd    *exec.Cmd
	stderr *controltest.Log
	state  string
	took   time.Duration
}

// start starts a server and waits until it is ready.
func start(t testing.TB, state string) *process {
	t.Helper()
	p, ready := launch(t, state)
	if !ready {
		_ = p.cmd.Wait()
		t.Fatalf("the server did not get ready:\n%s", p.stderr)
	}
	return p
}

func launch(t testing.TB, state string) (*process, bool) {
	t.Helper()
	p, out, begin := spawn(t, state)
	line, err := bufio.NewReader(out).ReadString('\n')
	p.took = time.Since(begin)
	return p, err == nil && strings.TrimSpace(line) == "ready"
}

// background starts a server and does not wait; the channel is closed when the
// process has ended.
func background(t testing.TB, state string) (*process, <-chan struct{}) {
	t.Helper()
	p, out, _ := spawn(t, state)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, out) // ends with the process
	}()
	return p, ended
}

func spawn(t testing.TB, state string) (*process, io.Reader, time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*patient) // a child that hangs is killed
	p := &process{cmd: exec.CommandContext(ctx, os.Args[0]), stderr: &controltest.Log{}, state: state}
	p.cmd.Env = append(os.Environ(), childEnv+"="+state)
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		cancel()
	})
	return p, out, begin
}

// config is what the kubeconfig in the state folder says.
func (p *process) config(t testing.TB) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", filepath.Join(p.state, controlDir, kubeconfigFile))
	if err != nil {
		t.Fatal(err)
	}
	c.QPS = -1
	return c
}

// kill ends the process as a crash does.
func (p *process) kill(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = p.cmd.Process.Wait()
}

// stop ends the process in order.
func (p *process) stop(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("stop: %v\n%s", err, p.stderr)
	}
}
