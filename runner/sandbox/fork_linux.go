package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// forked is a helper in namespaces of its own, and the socket to talk to it. It
// waits to be told what to build.
type forked struct {
	proc *os.Process
	conn *net.UnixConn
	tail *tail
}

// end ends a helper that nobody wants.
func (f *forked) end() {
	if f.proc != nil {
		_ = f.proc.Kill()
		_, _ = f.proc.Wait()
	}
	_ = f.conn.Close()
	f.tail.close()
}

// fork starts a helper as init of its own namespaces, on the launcher's thread.
func (l *Launcher) fork(ctx context.Context, helper string, network spec.Network, g *group) (*forked, error) {
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
	defer func() { _ = errs.Close() }()
	attr := &os.ProcAttr{Dir: "/", Env: []string{}, Files: []*os.File{null, null, errs, theirs}, Sys: namespaces(network)}
	if g != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(g.fd.Fd())
	}
	var forkErr error
	if err = l.run(ctx, func() {
		f.proc, forkErr = os.StartProcess(helper, []string{Helper}, attr)
	}); err == nil && forkErr != nil {
		err = diagnose(forkErr)
	}
	if err != nil {
		_ = errs.Close() // the tail ends with its last writer
		f.end()
		return nil, err
	}
	return f, nil
}

// namespaces are those of a sandbox. Users keep their numbers, so that files
// belong to the same ones inside and outside; the capabilities are the helper's,
// for its own mounts, and no program's.
func namespaces(n spec.Network) *syscall.SysProcAttr {
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP)
	if n != spec.NetworkHost {
		flags |= unix.CLONE_NEWNET
	}
	return &syscall.SysProcAttr{
		Cloneflags: flags, Setsid: true, Pdeathsig: syscall.SIGKILL,
		UidMappings: ids("/proc/self/uid_map", os.Getuid()), GidMappings: ids("/proc/self/gid_map", os.Getgid()),
		GidMappingsEnableSetgroups: os.Getuid() == 0,
		// Without ambient ones a user who is not root has none after execve.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN},
	}
}

// spare is a helper that was started before anybody knew for what.
type spare struct {
	done chan struct{}
	// helper is nil when none came about: who needs one then learns why.
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

// takeSpare returns the helper that was prepared, once; nil is none.
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
