package diagnose

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxFile is how large a file is that a server is told of.
const maxFile = 2 << 20

// readText reads a file of the workspace. No link is followed: a program of the run may
// have replaced the file that a call has changed by one.
func readText(root, name string) (text string, there bool, err error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false, fmt.Errorf("open the workspace: %w", err)
	}
	defer func() { _ = unix.Close(dir) }()
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if errors.Is(err, unix.ENOENT) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("open %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", false, fmt.Errorf("read %s: %w", name, err)
	case !info.Mode().IsRegular():
		return "", false, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > maxFile:
		return "", false, fmt.Errorf("%s has %d bytes, and a server is told of %d at most", name, info.Size(), maxFile)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return "", false, fmt.Errorf("read %s: %w", name, err)
	}
	return string(b), true, nil
}
