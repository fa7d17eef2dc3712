//go:build linux && (amd64 || arm64)

// Package initsignal keeps process 1 of a PID namespace from being ended by the signals of C libraries' threads.
//
// The kernel drops a signal from inside the namespace if its action is the
// default. It does not drop the signal while the first thread blocks it and
// another thread does not, as the Go runtime does while it starts a thread.
// os/signal handles all signals but 32 to 34, for which the runtime's own
// handler would end the process as well.
package initsignal

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Handle installs a handler that does nothing for signals 32 to 34. It copies
// the rest of the action from SIGUSR1, which must have been given to
// os/signal.Notify. Unlike an ignored signal, a handler is not inherited by the
// programs that the process starts.
func Handle() error {
	const setSize = 8                      // bytes of the kernel's sigset_t
	var action [4]uintptr                  // the kernel's struct sigaction: handler, flags, restorer, mask
	at := uintptr(unsafe.Pointer(&action)) //nolint:gosec // the kernel's structure

	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGUSR1), 0, at, setSize, 0, 0)
	action[0] = handler()
	for s := uintptr(32); errno == 0 && s <= 34; s++ {
		_, _, errno = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, s, at, 0, setSize, 0, 0)
	}
	if errno != 0 {
		return fmt.Errorf("handle signals 32 to 34: %w", errno)
	}
	return nil
}

// handler returns the address of a signal handler that returns at once.
func handler() uintptr
