//go:build !linux

package client

import "syscall"

// closeOnExec prevents processes that this one starts from inheriting files
// that its caller left open: a lock of a script, or the end of its pipe, must
// not stay open as long as a control plane runs.
func closeOnExec() error {
	const many = 1024
	for fd := 3; fd < many; fd++ {
		syscall.CloseOnExec(fd)
	}
	return nil
}
