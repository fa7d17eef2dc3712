package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/client"
)

const (
	// planePatience bounds the start and the stop of a control plane.
	planePatience = 30 * time.Second
	// verbPatience bounds one verb of agentctl.
	verbPatience = 2 * time.Minute
)

// plane is a control plane with a state folder of its own.
type plane struct {
	agentctl, agentd string
	folders          folders

	cmd *exec.Cmd
	log *logTail
}

func (b *bench) newPlane() (*plane, error) {
	// A short name: there is a socket in the folder, and its path has a limit.
	f, err := newFolders(b.dir, "cp")
	if err != nil {
		return nil, err
	}
	return &plane{agentctl: b.agentctl, agentd: agentdBeside(b.agentctl), folders: f}, nil
}

func agentdBeside(agentctl string) string { return filepath.Join(filepath.Dir(agentctl), "agentd") }

// close ends the control plane, whoever started it, and removes its state.
func (p *plane) close() error {
	return errors.Join(p.stop(), p.endDetached(), os.RemoveAll(p.folders.root))
}

// start starts agentd and returns how long it took to be ready. It is when it
// says so, which is after its kubeconfig was written.
func (p *plane) start(ctx context.Context) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, p.agentd, "serve", "--state", p.folders.state)
	cmd.Dir, cmd.Env = p.folders.root, p.folders.env()
	p.log = &logTail{ready: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = io.Discard, p.log
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	p.cmd = cmd
	select {
	case <-p.log.ready:
		return p.log.when.Sub(begin), nil
	case <-time.After(planePatience):
	case <-ctx.Done():
	}
	return 0, fmt.Errorf("agentd is not ready after %v\n%s", time.Since(begin), p.log.tail())
}

// stop ends the agentd that start has started.
func (p *plane) stop() error {
	if p.cmd == nil {
		return nil
	}
	cmd := p.cmd
	p.cmd = nil
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	kill := time.AfterFunc(planePatience, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("agentd: %w\n%s", err, p.log.tail())
	}
	return nil
}

// endDetached ends the agentd that a verb of agentctl has started. It is nobody's
// child, so it has become ours.
func (p *plane) endDetached() error {
	text, err := os.ReadFile(filepath.Join(p.folders.state, "control", "lock"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || !slices.Contains(children(os.Getpid()), pid) {
		return nil //nolint:nilerr // nobody holds the folder
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	for deadline := time.Now().Add(planePatience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var status unix.WaitStatus
		if got, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); got == pid || errors.Is(err, unix.ECHILD) {
			return nil
		}
	}
	return fmt.Errorf("agentd, process %d, does not stop", pid)
}

// verb runs agentctl and returns how long it took.
func (p *plane) verb(ctx context.Context, args ...string) (time.Duration, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, verbPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.agentctl, append(args, "--state", p.folders.state)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Dir, cmd.Env = p.folders.root, p.folders.env()
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	if err != nil {
		return took, nil, fmt.Errorf("agentctl %s: %w\n%s%s", strings.Join(args, " "), err, tail(stdout.Bytes()), tail(stderr.Bytes()))
	}
	return took, stdout.Bytes(), nil
}

// apply applies a manifest and checks how many objects it told of.
func (p *plane) apply(ctx context.Context, text string, objects int) (time.Duration, error) {
	path := filepath.Join(p.folders.manifests, "apply.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return 0, err
	}
	took, out, err := p.verb(ctx, "apply", "-f", path)
	if err != nil {
		return took, err
	}
	if n := bytes.Count(out, []byte("\n")); n != objects {
		return took, fmt.Errorf("apply told of %d objects, want %d\n%s", n, objects, tail(out))
	}
	return took, nil
}

// client returns a client of the control plane, as agentctl makes it.
func (p *plane) client(ctx context.Context) (*client.Client, error) {
	config, err := client.LoadConfig(p.folders.state, "", func(string) string { return "" })
	if err != nil {
		return nil, err
	}
	return config.Connect(ctx, client.ConnectOptions{OnlyRunning: true})
}

// weigh is the resident memory of agentd in MB, without its children.
func (p *plane) weigh() float64 { return float64(weigh([]int{p.cmd.Process.Pid}).RSS) / (1 << 20) }

// cpu is the time that agentd and all children it waited for have used.
func (p *plane) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	return parseCPU(string(text))
}

// parseCPU reads the four times of /proc/PID/stat: user and system, of the
// process and of its children.
func parseCPU(stat string) time.Duration {
	const tick = 10 * time.Millisecond                                  // of every Linux that Go runs on
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // the name may hold anything
	if len(fields) < 15 {
		return 0
	}
	var sum time.Duration
	for _, f := range fields[11:15] { // the state, after the name, is the third field, times are from the 14th on
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0
		}
		sum += time.Duration(n) * tick
	}
	return sum
}

// logTail waits for the line that says ready, and keeps the end of a log.
type logTail struct {
	ready chan struct{}
	when  time.Time

	mu   sync.Mutex
	text []byte
	said bool
}

// Write implements io.Writer.
func (l *logTail) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const most = 64 << 10
	if l.text = append(l.text, text...); len(l.text) > 2*most {
		l.text = append([]byte(nil), l.text[len(l.text)-most:]...)
	}
	if !l.said && hasReady(l.text) {
		l.said, l.when = true, time.Now()
		close(l.ready)
	}
	return len(text), nil
}

func hasReady(text []byte) bool {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if strings.Contains(lines.Text(), " msg=ready ") {
			return true
		}
	}
	return false
}

func (l *logTail) tail() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return tail(l.text)
}
