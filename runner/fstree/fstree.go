// Package fstree measures and removes folder trees of any depth.
//
// A program of a run may leave nested folders whose path is longer than the
// kernel accepts (4096 bytes), and deeper than a process may have files open.
// Code that walks by paths cannot reach them, and code that keeps every folder
// on the way open runs out of descriptors. The functions here need a few
// descriptors whatever the depth, and never follow a link.
package fstree

import (
	"errors"

	"golang.org/x/sys/unix"
)

const (
	openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	// direntSize is the buffer for one read of a folder.
	direntSize = 32 << 10
)

// readNames returns the next names of an open folder; none at its end.
func readNames(fd int, buf []byte) ([]string, error) {
	for {
		n, err := unix.ReadDirent(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return nil, err
		}
		if _, _, names := unix.ParseDirent(buf[:n], -1, nil); len(names) > 0 {
			return names, nil
		} // only "." and "..": there may be more
	}
}

// inode identifies a file of this host.
type inode struct{ dev, ino uint64 }

func inodeOf(st *unix.Stat_t) inode {
	return inode{uint64(st.Dev), st.Ino} //nolint:unconvert,nolintlint // it has another type on other systems
}
