package embedded

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// freeSpace is how much of the disk of a folder this process may still write.
func freeSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil //nolint:gosec // a size of blocks is positive
}

// reserveSpace has a file own so many bytes of the disk, and leaves its size as it
// is. Where the file system cannot do that nothing happens.
func reserveSpace(path string, bytes int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, bytes)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}
