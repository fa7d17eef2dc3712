package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// deadline bounds a script, grace what it has left in the background.
	deadline = 3 * time.Second
	grace    = 200 * time.Millisecond
	// mostEffects bounds what is recorded of a script.
	mostEffects = 2000
)

// process is a traced process.
type process struct {
	program string // the last element of the path of its program
	entered bool   // it is inside a system call
	attempt *attempt
	typed   string // the path that execve was given
}

// tracer records the effects of one script.
type tracer struct {
	processes map[int]*process
	seen      map[Effect]bool
	trace     Trace
}

// observe runs a script and records what it does. It belongs to one thread.
func observe(o order) (Trace, error) {
	if err := refill(); err != nil {
		return Trace{}, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return Trace{}, err
	}
	defer null.Close()
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "LANG=C", "USER=root", "TERM=dumb"}
	fd := null.Fd()
	pid, err := syscall.ForkExec("/bin/"+o.Shell, []string{o.Shell, "-c", o.Script}, &syscall.ProcAttr{
		Dir: workspace, Env: env, Files: []uintptr{fd, fd, fd}, Sys: &syscall.SysProcAttr{Ptrace: true, Setsid: true},
	})
	if err != nil {
		return Trace{Script: o.Script}, nil // a script that no program can be given, such as one with a zero byte
	}
	t := &tracer{processes: map[int]*process{pid: {program: o.Shell}}, seen: map[Effect]bool{}, trace: Trace{Script: o.Script}}
	if err := t.follow(pid); err != nil {
		return Trace{}, fmt.Errorf("trace %q: %w", o.Script, err)
	}
	t.passing()
	return t.trace, nil
}

const traceOptions = syscall.PTRACE_O_TRACESYSGOOD | syscall.PTRACE_O_TRACEFORK | syscall.PTRACE_O_TRACEVFORK |
	syscall.PTRACE_O_TRACECLONE | syscall.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL

// follow runs the first process and all that come of it to their end.
func (t *tracer) follow(first int) error {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(first, &status, syscall.WALL, nil); err != nil {
		return err
	}
	if err := syscall.PtraceSetOptions(first, traceOptions); err != nil {
		return err
	}
	if err := syscall.PtraceSyscall(first, 0); err != nil {
		return err
	}
	alarm := time.AfterFunc(deadline, func() { t.trace.Cut = true; killAll() })
	defer func() { alarm.Stop() }()
	for {
		pid, err := syscall.Wait4(-1, &status, syscall.WALL, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.ECHILD):
			return nil // every process has ended
		case err != nil:
			return err
		case status.Exited() || status.Signaled():
			delete(t.processes, pid)
			if pid == first && len(t.processes) > 0 && alarm.Stop() {
				alarm = time.AfterFunc(grace, killAll)
			}
			continue
		}
		signal := t.stopped(pid, status)
		if err := syscall.PtraceSyscall(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
}

// killAll ends every process of the box but this one.
func killAll() { _ = syscall.Kill(-1, syscall.SIGKILL) }

// stopped handles a stop and returns the signal that the process is to get.
func (t *tracer) stopped(pid int, status syscall.WaitStatus) int {
	p, known := t.processes[pid]
	if !known {
		p = &process{program: programOf(pid)}
		t.processes[pid] = p
	}
	switch signal := status.StopSignal(); {
	case signal == syscall.SIGTRAP|0x80:
		t.call(pid, p)
		return 0
	case signal == syscall.SIGTRAP && status>>16 != 0:
		if status.TrapCause() == syscall.PTRACE_EVENT_EXEC {
			t.executed(pid, p)
		}
		return 0
	case signal == syscall.SIGTRAP || signal == syscall.SIGSTOP && !known:
		return 0
	default:
		return int(signal)
	}
}

func programOf(pid int) string {
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // "": it has ended
	return filepath.Base(exe)
}

// executed records a program that a process has become.
func (t *tracer) executed(pid int, p *process) {
	by := p.program
	p.program = programOf(pid)
	if p.typed != "" {
		t.add(Effect{Kind: Exec, Path: p.typed, By: by})
	}
	p.typed = ""
}

// call handles the entry of a system call or the return from it.
func (t *tracer) call(pid int, p *process) {
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(pid, &regs) != nil {
		return // it has ended
	}
	if p.entered = !p.entered; p.entered {
		p.attempt = attempted(pid, &regs)
		if a := p.attempt; a != nil && a.kind == Exec {
			p.typed = a.path
		}
		return
	}
	a := p.attempt
	p.attempt = nil
	failed := int64(regs.Rax) < 0
	switch {
	case a == nil || a.kind == Exec || failed && a.kind != Connect:
		return
	case a.opens:
		target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, regs.Rax))
		if err != nil || !strings.HasPrefix(target, "/") {
			return
		}
		a.path = target
	}
	t.add(Effect{Kind: a.kind, Path: a.path, By: p.program})
	t.add(Effect{Kind: Remove, Path: a.gone, By: p.program})
}

// add records an effect once. What every program reads and what is lost in devices does not
// count.
func (t *tracer) add(e Effect) {
	if e.Path == "" || t.seen[e] || len(t.trace.Effects) >= mostEffects {
		return
	}
	t.seen[e] = true
	system := []string{"/usr/", "/etc/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/proc/", "/dev/"}
	if e.Kind != Exec && slices.ContainsFunc(system, func(dir string) bool { return strings.HasPrefix(e.Path+"/", dir) }) {
		return
	}
	if e.Kind == Read && e.Path == "/" {
		return
	}
	t.trace.Effects = append(t.trace.Effects, e)
}

// passing marks files that were there neither before nor after the script.
func (t *tracer) passing() {
	before := slices.Concat(fixture.files, fixture.folders, fixture.programs)
	for name := range fixture.links {
		before = append(before, name)
	}
	for i, e := range t.trace.Effects {
		if e.Kind == Exec || e.Kind == Connect || slices.Contains(before, e.Path) {
			continue
		}
		_, err := os.Lstat(e.Path)
		t.trace.Effects[i].Passing = errors.Is(err, os.ErrNotExist)
	}
}
