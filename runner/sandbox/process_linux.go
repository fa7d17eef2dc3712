package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// run executes f on the launcher's thread. The parent-death signal belongs to
// the thread that forked, not to the process: when the Go runtime ends a
// thread, its children are killed. So one goroutine keeps one thread
// permanently.
func (l *Launcher) run(ctx context.Context, f func()) error {
	l.mu.Lock()
	defer l.mu.Unlock() // held over the hand-over, so that Close cannot come between
	if l.closed || l.retired {
		return errClosed
	}
	if l.work == nil {
		work := make(chan func())
		l.work = work
		l.thread.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			for f := range work {
				f()
			}
		})
	}
	done := make(chan struct{})
	select {
	case l.work <- func() { f(); close(done) }:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-done
	return nil
}

// start forks the program and begins to watch it.
func (p *Process) start(ctx context.Context, l *Launcher, r *instance, spec Spec, path string) (err error) {
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
		if err != nil {
			p.abandon()
		}
	}()
	open := func(f *os.File, err error) error {
		if err == nil {
			files = append(files, f)
		}
		return err
	}
	if err := errors.Join(open(p.input(spec.Stdin)), open(p.output(spec.Stdout)), open(p.output(spec.Stderr))); err != nil {
		return err
	}
	std, target := files[:3:3], path
	if r != nil {
		return p.startInside(ctx, l, r, &spec, path, files)
	}
	if spec.Sha256 != "" {
		f, script, err := l.sums.open(path, spec.Sha256)
		if err != nil {
			return err
		}
		files = append(files, f)
		target = fmt.Sprintf("/proc/self/fd/%d", f.Fd())
		if script { // its interpreter opens the path a second time, after descriptors have been closed
			std, target = append(std, f), "/proc/self/fd/3"
		}
	}
	death := syscall.SIGKILL
	if spec.Tidy {
		death = syscall.SIGTERM
	}
	attr := &os.ProcAttr{
		Dir: spec.Dir, Env: append([]string{}, spec.Env...), Files: std, // a nil Env would inherit the runner's
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: death},
	}
	var startErr error
	if err := l.run(ctx, func() {
		p.proc, p.tag, startErr = startMarked(target, spec.Argv, attr)
		if startErr == nil {
			l.live[p] = struct{}{}
		}
	}); err != nil {
		return err
	}
	if startErr != nil {
		return explain(startErr)
	}
	p.feed(spec.Stdin)
	go p.finish(l)
	return nil
}

// startInside is start for a program in a sandbox.
func (p *Process) startInside(ctx context.Context, l *Launcher, r *instance, s *Spec, path string, std []*os.File) error {
	if s.Sha256 != "" {
		f, _, err := l.sums.open(path, s.Sha256)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		std = append(std[:3:3], f)
	}
	g, err := r.start(ctx, s, path, std)
	if err != nil {
		return err
	}
	p.inner = g
	l.mu.Lock()
	closed := l.closed
	l.live[p] = struct{}{}
	l.mu.Unlock()
	p.feed(s.Stdin)
	go p.finish(l)
	if closed { // in the meantime: no other code will end it
		p.Kill(0)
		return errClosed
	}
	return nil
}

// explain turns the errors of execve into sentences.
func explain(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return errors.New("exec format error: it is neither a program for this machine nor a script with a #! line")
	case errors.Is(err, syscall.ENOENT):
		return errors.New("the interpreter it names (#! line or dynamic loader) does not exist")
	case errors.Is(err, syscall.EACCES):
		return errors.New("permission denied: it is not executable for this user, or its file system is mounted noexec")
	case errors.Is(err, syscall.ETXTBSY):
		return errors.New("it is being written right now (text file busy)")
	}
	return err
}

// reap waits for the program itself.
func (p *Process) reap() ExitInfo {
	if p.inner != nil {
		return <-p.inner.exited
	}
	st, err := p.proc.Wait()
	if err != nil {
		return ExitInfo{Code: -1, Signal: "unknown (" + err.Error() + ")"}
	}
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ExitInfo{Code: -1, Signal: ws.Signal().String()}
	}
	return ExitInfo{Code: st.ExitCode()}
}

// terminate asks the program and its process group to end.
func (p *Process) terminate() {
	select {
	case <-p.dead:
	default:
		if p.inner != nil {
			p.inner.signal(syscall.SIGTERM)
			return
		}
		_ = syscall.Kill(-p.proc.Pid, syscall.SIGTERM)
	}
}
