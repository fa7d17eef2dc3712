package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// forked is a helper in namespaces of its own, and the socket to talk to it. It
// waits for the description of the sandbox to build.
type forked struct {
	proc *os.Process
	conn *net.UnixConn
	tail *tail
}

// end ends a helper that is not used.
func (f *forked) end() {
	if f.proc != nil {
		_ = f.proc.Kill()
		_, _ = f.proc.Wait()
	}
	_ = f.conn.Close()
	f.tail.close()
}

// fork starts a helper as init of its own namespaces. The helper is forked by
// another helper, which is started on the launcher's thread: see spec.ForkArg.
func (l *Launcher) fork(ctx context.Context, helper string, network spec.Network, g *group) (*forked, error) {
	plan, err := spec.Encode(&spec.Fork{
		Version: spec.Version, Network: network,
		Users: ids("/proc/self/uid_map", os.Getuid()), Groups: ids("/proc/self/gid_map", os.Getgid()),
	})
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "helper")
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, fmt.Errorf("watch the socket: %w", err)
	}
	f := &forked{conn: conn.(*net.UnixConn)}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		f.end()
		return nil, err
	}
	defer func() { _ = null.Close() }()
	t, errs, err := newTail()
	if err != nil {
		f.end()
		return nil, err
	}
	f.tail = t
	attr := &syscall.ProcAttr{ // one processor, for which the Go runtime starts fewer threads; the helper has its own environment
		Dir: "/", Env: []string{"GOMAXPROCS=1"}, Files: []uintptr{null.Fd(), null.Fd(), errs.Fd(), theirs.Fd()},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	if g != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(g.fd.Fd())
	}
	var mother int
	var forkErr error
	if err = l.run(ctx, func() {
		// Not by package os: its first start checks the features of the kernel,
		// with a process of its own. There is time for that while the helper
		// begins.
		mother, forkErr = syscall.ForkExec(helper, []string{Helper, spec.ForkArg, string(plan)}, attr)
	}); err == nil && forkErr != nil {
		err = diagnose(forkErr)
	}
	_, _ = errs.Close(), theirs.Close() // both now end with the last helper
	if err == nil {
		if err = f.born(); err != nil {
			_ = syscall.Kill(mother, syscall.SIGKILL) // its pid is not reused before Wait
		}
		l.tidy.Go(func() { collect(mother) }) // its end takes as long as its start
	}
	if err != nil {
		f.end()
		return nil, err
	}
	return f, nil
}

// collect waits for a process and ignores how it ended.
func collect(pid int) {
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// born waits until the helper is there.
func (f *forked) born() error {
	if err := f.conn.SetReadDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	buf := make([]byte, maxReply)
	n, err := f.conn.Read(buf)
	if err != nil {
		return fmt.Errorf("start the helper: %w: %s", err, f.tail)
	}
	m, err := spec.DecodeReply(buf[:n])
	switch {
	case err != nil:
		return err
	case m.Errno != 0:
		return diagnose(syscall.Errno(m.Errno))
	case m.PID == 0:
		return fmt.Errorf("start the helper: %s", m.Error)
	}
	if f.proc, err = os.FindProcess(m.PID); err != nil {
		return fmt.Errorf("find the helper: %w", err)
	}
	return f.conn.SetReadDeadline(time.Time{})
}

// spare is a helper that was started before its use was known.
type spare struct {
	done chan struct{}
	// helper is nil when its start failed; a program that needs it then gets the
	// error.
	helper *forked
}

// Prepare starts a helper before the first program needs it. With it the longest
// part of a sandbox is over: a fork into new namespaces copies the tables of all
// memory, so that the earlier it is the less it takes. Nothing but time is lost
// when no program comes.
func (l *Launcher) Prepare() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.spare != nil {
		return
	}
	s := &spare{done: make(chan struct{})}
	l.spare = s
	l.tidy.Go(func() {
		defer close(s.done)
		ctx, cancel := context.WithTimeout(context.Background(), bootTime)
		defer cancel()
		if path, err := l.helper(); err == nil {
			s.helper, _ = l.fork(ctx, path, spec.NetworkNone, nil)
		}
	})
}

// takeSpare returns the helper that was prepared, once; nil if there is none.
func (l *Launcher) takeSpare() *forked {
	l.mu.Lock()
	s := l.spare
	l.spare = nil
	l.mu.Unlock()
	if s == nil {
		return nil
	}
	<-s.done
	return s.helper
}

// discard ends a helper that was prepared in vain.
func (l *Launcher) discard() {
	if f := l.takeSpare(); f != nil {
		f.end()
	}
}
