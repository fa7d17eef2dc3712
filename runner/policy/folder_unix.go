//go:build unix

package policy

import (
	"strings"

	"golang.org/x/sys/unix"
)

// openSteps opens a folder below an open one, step by step and without following
// links.
func openSteps(at int, rel string, flags int) (int, error) {
	fd, err := unix.Openat(at, ".", flags, 0)
	if err != nil || rel == "." {
		return fd, err
	}
	for step := range strings.SplitSeq(rel, "/") {
		next, err := unix.Openat(fd, step, flags|unix.O_NOFOLLOW, 0)
		_ = unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}
