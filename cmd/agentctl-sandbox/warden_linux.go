package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/initsignal"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// warden is process 1 of a sandbox: it starts, signals and collects programs.
type warden struct {
	line *control
	cage *cage
	// writable are the workspace and the mounts that programs may change.
	writable []string
	landlock int
	// listener of the proxy, or -1.
	listener int
	// sockets is the file system of the plugins' sockets.
	sockets int

	// mu is held over a fork, so that no child is reaped before it is known.
	mu       sync.Mutex
	programs map[uint64]*inmate
	// mark is that of the next program; 0 when this host gives none.
	mark uint64
	// born is signalled when there may be children again.
	born chan struct{}
}

// inmate is a program that was started on request.
type inmate struct {
	pid  int
	mark uint64
	// gone is set when it has been reaped, and its number is free again.
	gone bool
}

// build makes the sandbox in the order in which each step is still possible.
func build(b *spec.Boot) (*warden, error) {
	w := &warden{programs: map[uint64]*inmate{}, writable: writable(&b.Profile), listener: -1, born: make(chan struct{}, 1)}
	if err := deaf(); err != nil {
		return nil, err
	}
	listener, err := network(b.Profile.Network)
	if err != nil {
		return nil, err
	}
	w.listener = listener
	v, err := show(b)
	if err != nil {
		return nil, err
	}
	w.sockets = v.sockets
	if err := limit(&b.Profile.Limits); err != nil {
		return nil, err
	}
	w.mark = firstMark()
	rules := -1
	if abi := landlockABI(); abi >= leastABI {
		if rules, err = ruleset(abi, v.writable); err != nil {
			return nil, err
		}
		w.landlock = abi
		defer func() { _ = unix.Close(rules) }()
	}
	w.cage, err = newCage(func() error {
		if err := become(b.UID, b.GID); err != nil {
			return err
		}
		if err := drop(); err != nil {
			return err
		}
		if rules >= 0 {
			if err := restrict(rules); err != nil {
				return err
			}
		}
		return seal(b.Profile.Limits.Memory > 0)
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// writable are the workspace, whatever the access, and the writable mounts.
func writable(p *spec.Profile) []string {
	dirs := []string{p.Workspace}
	for _, m := range p.Mounts {
		if m.Writable {
			dirs = append(dirs, m.At())
		}
	}
	return dirs
}

// deaf handles every signal by doing nothing. The kernel spares a process 1 those
// from inside that have their default action, but not at a moment when the first
// thread blocks them, as the Go runtime does while it starts another thread. To
// ignore them would be inherited by programs; a handler is not.
func deaf() error {
	signal.Notify(make(chan os.Signal, 1)) // every signal that the package knows; those that do not fit are dropped
	return initsignal.Handle()
}

// start starts a program and returns its number, or an error.
func (w *warden) start(m *spec.Request, files []int) {
	r := &spec.Reply{ID: m.ID}
	pid, err := w.launch(m, files, r)
	if err != nil {
		r.Error, r.Errno = err.Error(), errnoOf(err)
	}
	if pid == 0 { // otherwise it has been sent
		w.line.send(r)
	}
}

func (w *warden) launch(m *spec.Request, files []int, r *spec.Reply) (int, error) {
	if want := 3; len(files) != want && (!m.Checked || len(files) != want+1) {
		return 0, fmt.Errorf("%d descriptors came with the request", len(files))
	}
	if err := isFolder(m.Dir); err != nil {
		return 0, err
	}
	if err := ownDevices(files[:3]); err != nil {
		return 0, err
	}
	std, path := files[:3:3], m.Path
	if m.Checked {
		fd, script, err := sameFile(m.Path, files[3])
		if err != nil {
			return 0, err
		}
		defer func() { _ = unix.Close(fd) }()
		path = fmt.Sprintf("/proc/self/fd/%d", fd)
		if script { // its interpreter opens it again, when descriptors have been closed
			std, path = append(std, fd), "/proc/self/fd/3"
		}
	}
	attr := &syscall.ProcAttr{Dir: m.Dir, Env: m.Env, Sys: &syscall.SysProcAttr{Setsid: true}}
	if attr.Env == nil {
		attr.Env = []string{} // nil would be that of this process
	}
	for _, fd := range std {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.programs[m.ID] != nil {
		return 0, fmt.Errorf("program %d has been started", m.ID)
	}
	p := &inmate{mark: w.nextMark()}
	var err error
	w.cage.do(func() { p.pid, err = syscall.ForkExec(path, m.Argv, attr) })
	if err != nil {
		return 0, err
	}
	w.programs[m.ID] = p
	select {
	case w.born <- struct{}{}:
	default:
	}
	r.PID = p.pid
	w.line.send(r) // before its end can be reported
	return p.pid, nil
}

// ownDevices replaces devices that the runner has opened by the view's
// /dev/null: a program that owns those of the host could change their mode
// through them.
func ownDevices(std []int) error {
	for _, fd := range std {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return fmt.Errorf("look at a stream: %w", err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFCHR {
			continue
		}
		null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open /dev/null: %w", err)
		}
		err = unix.Dup3(null, fd, unix.O_CLOEXEC)
		_ = unix.Close(null)
		if err != nil {
			return fmt.Errorf("open /dev/null: %w", err)
		}
	}
	return nil
}

func isFolder(dir string) error {
	var st unix.Stat_t
	err := unix.Stat(dir, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	if err != nil {
		return fmt.Errorf("working folder %s: %w", dir, err)
	}
	return nil
}

// sameFile opens a program as the sandbox shows it and compares it with the
// file whose checksum was verified. The file outside must not be started:
// through /proc/self/exe a program could write to it.
func sameFile(path string, checked int) (fd int, script bool, err error) {
	fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, false, err
	}
	var a, b unix.Stat_t
	if err = unix.Fstat(fd, &a); err == nil {
		err = unix.Fstat(checked, &b)
	}
	if err == nil && (a.Dev != b.Dev || a.Ino != b.Ino) {
		err = fmt.Errorf("%s is not the file whose checksum was taken", path)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, false, err
	}
	var head [2]byte
	n, _ := unix.Pread(fd, head[:], 0)
	return fd, string(head[:max(n, 0)]) == "#!", nil
}

// reap reaps every process that ends, and reports the ends of programs.
func (w *warden) reap() {
	for {
		// It stays uncollected until its number can be looked up.
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			<-w.born
		case err == nil:
			w.collect()
		}
	}
}

// collect takes one process that has ended.
func (w *warden) collect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var st syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &st, syscall.WNOHANG, nil)
	if err != nil || pid <= 0 {
		return
	}
	for id, p := range w.programs {
		if p.pid != pid || p.gone {
			continue
		}
		p.gone = true
		r := &spec.Reply{ID: id, Exited: true, Code: st.ExitStatus()}
		if st.Signaled() {
			r.Code, r.Signal = -1, int(st.Signal())
		}
		w.line.send(r)
	}
}

// signal reaches the process group of a program.
func (w *warden) signal(m *spec.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.programs[m.Program]; p != nil && !p.gone {
		_ = unix.Kill(-p.pid, unix.Signal(m.Signal))
	}
}
