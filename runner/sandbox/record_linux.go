package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Unrecorded is why what bound calls do cannot be recorded on this host; "" if it can be.
func Unrecorded() string {
	err := listener()
	switch {
	case errors.Is(err, unix.EBUSY):
		return "another program records what agentctl does (seccomp user notification)"
	case err != nil:
		return fmt.Sprintf("this kernel does not report system calls as of Linux 5.19 (seccomp user notification: %v)", err)
	}
	// Under 1, the memory of descendants may be read.
	if scope, err := strconv.Atoi(sysctl("kernel.yama.ptrace_scope")); err == nil && scope > 1 {
		return fmt.Sprintf("no program may read the memory of another one (kernel.yama.ptrace_scope=%d)", scope)
	}
	return ""
}

// listener makes a listener for a filter that reports nothing, on a thread that ends with it:
// a thread cannot take a filter off.
func listener() error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		done <- func() error {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return err
			}
			allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
			program := unix.SockFprog{Len: 1, Filter: &allow}
			const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
			fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program))) //nolint:gosec // the kernel's structure
			if errno != 0 {
				return errno
			}
			return unix.Close(int(fd))
		}()
	}()
	return <-done
}

// recording is whether what bound calls do can be recorded.
func recording() Control {
	c := Control{Name: "record", OK: true, Why: "what bound calls do is recorded, and what they were denied is named"}
	if why := Unrecorded(); why != "" {
		c.OK, c.Why, c.Hint = false, why+": calls are bound, but what they do is not recorded", "use a kernel of Linux 5.19 or newer with CONFIG_SECCOMP_FILTER, and kernel.yama.ptrace_scope of at most 1"
	}
	return c
}
