package container

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Cause is the reason why a program ended, where its exit code does not show
// it.
type Cause string

// The causes.
const (
	// OutOfMemory: the container met its limit and the kernel killed the program,
	// or something the program had started.
	OutOfMemory Cause = "OutOfMemory"
	// TooManyProcesses: the program ended with an error after the limit of
	// processes had refused it one.
	TooManyProcesses Cause = "TooManyProcesses"
	// Killed: by this runtime.
	Killed Cause = "Killed"
	// Lost: containerd did not report it.
	Lost Cause = "Lost"
)

// ExitInfo is how a program ended.
type ExitInfo struct {
	// Code is the exit code, -1 when a signal ended the program.
	Code int
	// Signal is its name, for example "killed", or "".
	Signal string
	// Cause is why the program ended, where it is known.
	Cause Cause
	// Detail is the cause in words, with the field of the manifest to change.
	Detail string
	// Processes that were killed by this runtime.
	Processes int
}

// String returns "exit code 3" or "signal killed: exceeded 512Mi (spec.limits.memory)".
func (e ExitInfo) String() string {
	text := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != "" {
		text = "signal " + e.Signal
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// oomWait is how much later than the exit the kernel's event of an OOM kill may
// come.
const oomWait = 300 * time.Millisecond

// bySignal is what an exit code is above when a signal was the end.
const bySignal = 128

// explain makes an ExitInfo of an exit code and what else is known about the
// end.
func (p *Process) explain(code uint32, err error) ExitInfo {
	if err != nil {
		return ExitInfo{Code: -1, Signal: "lost", Cause: Lost, Detail: fmt.Sprintf("containerd could not say how it ended: %v", err)}
	}
	p.mu.Lock()
	killed := p.killed
	p.mu.Unlock()
	e := ExitInfo{Code: int(code)}
	if sig := syscall.Signal(code - bySignal); code > bySignal && code <= bySignal+64 {
		e = ExitInfo{Code: -1, Signal: sig.String()}
	}
	switch {
	case killed >= 0:
		e.Cause, e.Processes = Killed, killed
	case p.ranOut(e.Signal == syscall.SIGKILL.String()):
		e.Cause = OutOfMemory
		e.Detail = fmt.Sprintf("out of memory: exceeded %s (spec.limits.memory)", quantity(p.limits.Memory))
		if e.Signal == "" {
			e.Detail = "a process it had started was killed: " + e.Detail
		}
	case code != 0 && p.kernelSays(processesRefused) > p.before.refused:
		e.Cause = TooManyProcesses
		e.Detail = fmt.Sprintf("more than %d processes and threads were refused (spec.limits.pids)", p.limits.Pids)
	}
	return e
}

// ranOut reports whether the container reached its memory limit since the
// program was started. Where the kernel's own count cannot be read, it uses the
// event of containerd. That event comes by another way than the exit, and so
// perhaps after it.
func (p *Process) ranOut(wait bool) bool {
	select {
	case <-p.oom:
		return true
	default:
	}
	if n := p.kernelSays(killedForMemory); n >= 0 || !wait {
		return n > p.before.memory
	}
	t := time.NewTimer(oomWait)
	defer t.Stop()
	select {
	case <-p.oom:
		return true
	case <-t.C:
		return false
	}
}

func quantity(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// ExitError is the error of a plugin that did not end with exit code 0.
type ExitError struct{ Info ExitInfo }

func (e *ExitError) Error() string { return e.Info.String() }

// errNotStarted is returned by a wait for a process that was never started.
var errNotStarted = errors.New("plugin was not started")

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Bounds of a tail.
const (
	tailBytes = 4 << 10
	tailLines = 20
)

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b[max(len(b)-tailBytes, 0):]...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// String returns the last lines without what a terminal would obey.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.ToValidUTF8(string(t.buf), "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || strconv.IsPrint(r) {
			return r
		}
		return -1
	}, text)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(len(lines)-tailLines, 0):], "\n")
}
