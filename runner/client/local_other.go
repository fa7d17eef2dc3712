//go:build !linux

package client

import "syscall"

// closeOnExec keeps files that a caller left open in us from those we start: a
// lock of a script, or the end of its pipe, must not live as long as a control
// plane.
func closeOnExec() error {
	const many = 1024
	for fd := 3; fd < many; fd++ {
		syscall.CloseOnExec(fd)
	}
	return nil
}
