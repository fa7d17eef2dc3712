package main

import (
	"errors"
	"fmt"
	"maps"
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
	deadline = time.Second
	grace    = 100 * time.Millisecond
	// mostEffects bounds what is recorded of a script.
	mostEffects = 2000
)

// process is a traced process.
type process struct {
	program string   // the last element of the path of its program
	attempt *attempt // set inside a system call that matters
}

// tracer records the effects of one script.
type tracer struct {
	processes map[int]*process
	seen      map[Effect]bool
	// changed is set when files may differ from those of the fixture.
	changed bool
	trace   Trace
}

// observe runs a script and records what it does, and reports whether it changed files. Its
// thread may open none: see filterCalls.
func observe(script string, null *os.File) (_ Trace, changed bool, _ error) {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "LANG=C", "USER=root", "TERM=dumb"}
	fd := null.Fd()
	pid, err := syscall.ForkExec("/bin/bash", []string{"bash", "-c", script}, &syscall.ProcAttr{
		Dir: workspace, Env: env, Files: []uintptr{fd, fd, fd}, Sys: &syscall.SysProcAttr{Ptrace: true, Setsid: true},
	})
	if err != nil {
		return Trace{Script: script}, false, nil // a script that no program can be given, such as one with a zero byte
	}
	t := &tracer{processes: map[int]*process{pid: {program: "bash"}}, seen: map[Effect]bool{}, trace: Trace{Script: script}}
	if err := t.follow(pid); err != nil {
		return Trace{}, false, fmt.Errorf("trace %q: %w", script, err)
	}
	t.passing()
	return t.trace, t.changed || t.trace.Cut, nil
}

const traceOptions = syscall.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACESECCOMP | syscall.PTRACE_O_TRACEFORK | syscall.PTRACE_O_TRACEVFORK |
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
	if err := syscall.PtraceCont(first, 0); err != nil {
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
		resume := syscall.PtraceCont
		if p := t.processes[pid]; p.attempt != nil {
			resume = syscall.PtraceSyscall // it stops again with the result of the call
		}
		if err := resume(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
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
		t.returned(pid, p)
		return 0
	case signal == syscall.SIGTRAP && status>>16 != 0:
		switch status.TrapCause() {
		case unix.PTRACE_EVENT_SECCOMP:
			t.called(pid, p)
		case syscall.PTRACE_EVENT_EXEC:
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
	p.program, p.attempt = programOf(pid), nil
	if name := executedName(pid); name != "" {
		t.add(Effect{Kind: Exec, Path: located(linked(pid, "cwd"), name, false), By: by})
	}
}

// called notes a system call that begins.
func (t *tracer) called(pid int, p *process) {
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(pid, &regs) != nil {
		return // it has ended
	}
	p.attempt = attempted(pid, &regs)
}

// returned records a system call that has ended.
func (t *tracer) returned(pid int, p *process) {
	a := p.attempt
	p.attempt = nil
	var regs syscall.PtraceRegs
	if a == nil || syscall.PtraceGetRegs(pid, &regs) != nil {
		return
	}
	failed := int64(regs.Rax) < 0
	switch {
	case failed && a.kind != Connect:
		return
	case a.opens:
		target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, regs.Rax))
		if err != nil || !strings.HasPrefix(target, "/") {
			return
		}
		a.path = target
	}
	if a.kind != Read && a.kind != Connect {
		t.changed = true
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
	before = slices.AppendSeq(slices.AppendSeq(before, maps.Keys(fixture.links)), maps.Keys(fixture.texts))
	for i, e := range t.trace.Effects {
		if e.Kind == Exec || e.Kind == Connect || slices.Contains(before, e.Path) {
			continue
		}
		_, err := os.Lstat(e.Path)
		t.trace.Effects[i].Passing = errors.Is(err, os.ErrNotExist)
	}
}
