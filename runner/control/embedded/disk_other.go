//go:build !linux

package embedded

import "golang.org/x/sys/unix"

// freeSpace is how much of the disk of a folder this process may still write.
func freeSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil //nolint:gosec,unconvert // the types differ between systems
}

// reserveSpace is done on Linux only.
func reserveSpace(string, int64) error { return nil }
