package entry

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentctl.dev/agentctl/runner/sandbox/initsignal"
)

// Main executes the command in args, the arguments without the program's name.
// It returns the exit code: that of the program, or 128 and its signal.
func Main(args []string, stderr io.Writer) int {
	switch {
	case len(args) == 1 && args[0] == Hold:
		return hold()
	case len(args) > 1 && args[0] == Run:
		return run(args[1:], stderr)
	}
	fmt.Fprintln(stderr, "agentctl-entry is the first process of a container and is started by agentctl.")
	return exitUsage
}

// shield protects this process from the processes inside: they have the same
// user, and could otherwise trace it, end it, or read its memory through /proc.
func shield() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return fmt.Errorf("become undumpable: %w", errno)
	}
	return nil
}

// listen handles every signal, because an unhandled signal may end this
// process, although it is process 1: the kernel drops a signal with the default
// action only while the first thread does not block it, and the Go runtime
// blocks all signals while it starts another thread. SIGCHLD has a channel of
// its own, which a flood of other signals cannot fill.
func listen() (signals, ends chan os.Signal, err error) {
	signals, ends = make(chan os.Signal, 16), make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGCHLD)
	for s := syscall.Signal(1); s <= lastSignal; s++ {
		switch s {
		case syscall.SIGCHLD, syscall.SIGURG: // the latter is the Go runtime's, and harmless
		default:
			signal.Notify(signals, s)
		}
	}
	return signals, ends, initsignal.Handle()
}

const lastSignal = 64

// hold reaps orphaned processes and does not return: only a kill from outside
// ends it.
func hold() int {
	if err := shield(); err != nil {
		return exitUsage
	}
	signals, ends, err := listen()
	if err != nil {
		return exitUsage
	}
	for {
		select {
		case <-signals:
		case <-ends:
			reap(0)
		}
	}
}

// run starts the program, reaps, and ends with it.
func run(argv []string, stderr io.Writer) int {
	runtime.LockOSThread() // see release
	defer runtime.UnlockOSThread()
	fail := func(code int, err error) int {
		fmt.Fprintf(stderr, "start %s: %v\n", argv[0], err)
		return code
	}
	greeting, err := ReadGreeting(os.Stdin)
	if err != nil {
		return fail(exitUsage, err)
	}
	if !greeting.Input {
		if err := muteStdin(); err != nil {
			return fail(exitUsage, err)
		}
	}
	env := merge(os.Environ(), greeting.Env)
	path, err := lookup(argv[0], env)
	if errors.Is(err, os.ErrNotExist) {
		return fail(exitNotFound, err)
	} else if err != nil {
		return fail(exitCannotRun, err)
	}
	// Orphans come to this process also where it is not process 1.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return fail(exitUsage, errno)
	}
	if err := shield(); err != nil {
		return fail(exitUsage, err)
	}
	signals, ends, err := listen()
	if err != nil {
		return fail(exitUsage, err)
	}
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return fail(exitCannotRun, err)
	}
	return attend(pid, signals, ends)
}

const prSetChildSubreaper = 36

// muteStdin leaves the program an empty input. The pipe of this process must
// not stay open: its other end would wait.
func muteStdin() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	return syscall.Dup3(int(null.Fd()), 0, 0)
}

// attend reaps until the program has ended. Where this process is not process
// 1, SIGQUIT ends the program with everything it has started; process 1 is
// killed from outside. No other signal is forwarded. Requests to end come from
// outside, to the program itself; a signal to this process could come from any
// process inside.
func attend(pid int, signals, ends <-chan os.Signal) int {
	for {
		select {
		case <-ends:
			if status, gone := reap(pid); gone {
				killAll()
				return status
			}
		case s := <-signals:
			if s == syscall.SIGQUIT && os.Getpid() != 1 {
				killAll()
				return exitBySignal + int(syscall.SIGKILL)
			}
		}
	}
}

// reap collects the processes that have ended and reports whether the program
// is one of them.
func reap(program int) (code int, gone bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if pid <= 0 {
			return code, gone
		}
		switch {
		case status.Stopped():
			release(pid, status.StopSignal())
		case pid == program && status.Signaled():
			code, gone = exitBySignal+int(status.Signal()), true
		case pid == program:
			code, gone = status.ExitStatus(), true
		}
	}
}

// release continues a program that has asked its parent, which is this process,
// to trace it: such a program stops at every signal. Only the thread that
// forked can continue it, which is why run keeps to one thread.
func release(pid int, sig syscall.Signal) {
	if sig == syscall.SIGTRAP {
		sig = 0 // of the tracing itself
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PTRACE, syscall.PTRACE_DETACH, uintptr(pid), 0, uintptr(sig), 0, 0)
}

// killAllTime bounds killAll; only a fork bomb needs more than a moment.
const killAllTime = 2 * time.Second

// killAll kills every descendant: children first, then those that become
// children by that. Process 1 does not need it: the kernel kills the rest when
// process 1 ends.
func killAll() {
	if os.Getpid() == 1 {
		return
	}
	for end := time.Now().Add(killAllTime); time.Now().Before(end); {
		for _, pid := range children() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.ECHILD) {
				return
			}
			if pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// children lists the processes whose parent this is.
func children() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	self := strconv.Itoa(os.Getpid())
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name, in parentheses, may hold anything; state and parent follow.
		_, rest, _ := strings.Cut(string(stat[max(strings.LastIndexByte(string(stat), ')'), 0):]), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == self {
			out = append(out, pid)
		}
	}
	return out
}
