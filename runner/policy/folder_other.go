//go:build !linux

package policy

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openBeneath opens the folder rel of an absolute folder top for listing, without
// following links below top.
func openBeneath(top, rel string, _ bool) (*os.File, error) {
	at, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: top, Err: err}
	}
	defer func() { _ = unix.Close(at) }()
	fd, err := openSteps(at, rel, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_CLOEXEC)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: top + "/" + rel, Err: err}
	}
	return os.NewFile(uintptr(fd), top+"/"+rel), nil
}

// openRegular opens a regular file for reading.
func openRegular(file string) (*os.File, error) {
	if info, err := os.Stat(file); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: file, Err: errNotRegular}
	}
	return os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
