package container

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// openSource opens a file or folder to be mounted, on a path without links:
// another tool may have put a link on the path that a manifest names.
func openSource(path string) (*os.File, error) {
	f, err := openPath(unix.AT_FDCWD, path, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", path, err)
	}
	return f, nil
}

func openPath(dir int, path string, resolve uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve}
	for {
		fd, err := unix.Openat2(dir, path, &how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return nil, err
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

// sameSource reports whether a process sees at its path the file that was
// opened: containerd resolves a source by its name a second time, and the file
// may have been replaced meanwhile. The check is not possible for a process
// that we may not inspect.
func sameSource(pid int, f *os.File) error {
	root, err := openPath(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/root", pid), 0)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at mount %s: %w", f.Name(), err)
	}
	defer func() { _ = root.Close() }()
	seen, err := openPath(int(root.Fd()), strings.TrimPrefix(f.Name(), "/"), unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
	if err != nil {
		return fmt.Errorf("look at mount %s: %w", f.Name(), err)
	}
	defer func() { _ = seen.Close() }()
	var a, b unix.Stat_t
	if err := errors.Join(unix.Fstat(int(f.Fd()), &a), unix.Fstat(int(seen.Fd()), &b)); err != nil {
		return fmt.Errorf("look at mount %s: %w", f.Name(), err)
	}
	if a.Dev != b.Dev || a.Ino != b.Ino {
		return fmt.Errorf("mount %s: it was exchanged while the container was made", f.Name())
	}
	return nil
}
