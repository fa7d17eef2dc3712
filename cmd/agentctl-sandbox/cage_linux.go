package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// cage is the thread that starts programs. Capabilities, no_new_privs, Landlock
// and seccomp belong to a thread and are inherited by its children, so they are
// set on it once; the other threads of this process, which mount and reap, are
// not changed. The Go runtime never creates a thread from a locked one, and
// this one is never unlocked.
type cage struct{ work chan func() }

// newCage locks a thread in. The error of any layer is that of the whole.
func newCage(lock func() error) (*cage, error) {
	c := &cage{work: make(chan func())}
	locked := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := lock()
		locked <- err
		if err != nil {
			return // and the thread ends with it
		}
		for f := range c.work {
			f()
		}
	}()
	return c, <-locked
}

// do runs f in the cage and waits for it.
func (c *cage) do(f func()) {
	done := make(chan struct{})
	c.work <- func() { f(); close(done) }
	<-done
}

// become changes the user of this thread to that of the programs. Only root's
// helper may choose another user. The function of the standard library would
// change all threads.
func become(uid, gid int) error {
	if uid == unix.Getuid() {
		return nil
	}
	// A change of user would take the capabilities that are still needed.
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, securebits, 0, 0, 0); err != nil {
		return fmt.Errorf("set securebits: %w", err)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("leave root's groups: %w", errno)
	}
	u, g := uintptr(uid), uintptr(gid)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, g, g, g); errno != 0 {
		return fmt.Errorf("become group %d: %w", gid, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, u, u, u); errno != 0 {
		return fmt.Errorf("become user %d: %w", uid, errno)
	}
	return nil
}

// securebits make user 0 a user like any other: execve gives it nothing.
const securebits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7 // noroot, no setuid fixup, no ambient raise, each locked

// drop takes every capability from this thread, irreversibly.
func drop() error {
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, securebits, 0, 0, 0); err != nil {
		return fmt.Errorf("set securebits: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	for c := uintptr(0); ; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL { //nolint:errorlint // a number of the kernel
			break // the one after the last
		} else if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}
