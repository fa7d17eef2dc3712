package record

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/sdk"
)

// notification is the kernel's struct seccomp_notif. Of a later kernel it may be larger:
// this one is asked for by its size.
type notification struct {
	id     uint64
	pid    uint32
	flags  uint32
	number int32
	arch   uint32
	ip     uint64
	args   [6]uint64
}

// response is the kernel's struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	error int32
	flags uint32
}

// listener is what the kernel reports by. The descriptors are closed when the goroutine that
// answers has ended.
type listener struct {
	fd, quit int
	over     chan struct{}

	mu     sync.Mutex
	closed bool
}

// listen answers the notifications of a listener until no process uses its filter.
func (w *Watch) listen(fd int) error {
	quit, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("listen to a command: %w", err)
	}
	// The goroutine waits in the kernel and not in the poller of Go: then the one that waits
	// and the one that is waited for run on the same processor by turns (Linux 6.6).
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	l := &listener{fd: fd, quit: quit, over: make(chan struct{})}
	w.listener = l
	go func() { // ends with the last process, or by stop
		defer l.close()
		defer close(l.over)
		w.serve(l)
	}()
	return nil
}

func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	_ = unix.Close(l.fd)
	_ = unix.Close(l.quit)
}

// stop has the goroutine end, even if there are processes.
func (l *listener) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		_, _ = unix.Write(l.quit, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// gone reports whether no process uses the filter.
func (l *listener) gone() bool {
	select {
	case <-l.over:
		return true
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return true
	}
	p := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor
	n, err := unix.Poll(p, 0)
	return n > 0 && err == nil && p[0].Revents&unix.POLLIN == 0
}

// serve answers all notifications until no more will come.
func (w *Watch) serve(l *listener) {
	own := map[string]bool{}
	for {
		p := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}, {Fd: int32(l.quit), Events: unix.POLLIN}} //nolint:gosec // descriptors
		_, err := unix.Poll(p, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil, p[1].Revents != 0, p[0].Revents&unix.POLLIN == 0:
			return
		default:
			w.answer(l.fd, own)
		}
	}
}

// answer receives a notification, notes what it reports, and has the kernel continue. A
// process that has been killed meanwhile needs no answer.
func (w *Watch) answer(fd int, own map[string]bool) {
	var n notification
	if !control(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) { //nolint:gosec // the kernel's structure
		return
	}
	w.note(fd, &n, own)
	r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	control(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) //nolint:gosec // the kernel's structure
}

func control(fd int, request uintptr, argument unsafe.Pointer) bool {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
		if errno != unix.EINTR {
			return errno == 0
		}
	}
}

// note adds what a notification reports to the record. Whatever happens, the process
// continues.
func (w *Watch) note(fd int, n *notification, own map[string]bool) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("panic in the record of a command", "call", n.number, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	c := callOf(n.number)
	if c == nil {
		return
	}
	p := newProcess(int(n.pid))
	defer p.close()
	l := look{process: p, call: c, args: n.args, rights: w.rules(), own: own}
	a, err := l.attempt() // without the lock: a file system may not answer
	if w.observe != nil {
		w.observe(&l, a, err)
	}
	// Its number may be another process's by now.
	if !control(fd, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)) { //nolint:gosec // the kernel's structure
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, errUnread):
		w.draft.record.Omitted++
	case a == nil:
	case a.op == sdk.RecordExecute && w.skip > 0:
		w.skip--
	case w.draft.add(a) && w.excess != nil:
		all := w.draft.record.Exceeded
		w.excess(all[len(all)-1])
	}
}

func (w *Watch) rules() *Rights {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rights
}
