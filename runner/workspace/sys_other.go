//go:build !linux

package workspace

import (
	"golang.org/x/sys/unix"
)

func cloneFile(int, int) error { return unix.ENOTSUP }

// currentTick makes every file count as just changed.
func currentTick() unix.Timespec { return unix.Timespec{} }

func exchange(int, string, int, string) (ok bool, err error) { return false, nil }

func moveNew(fromDir int, from string, toDir int, to string) error {
	return linkNew(fromDir, from, toDir, to)
}

// nextDirent takes the next name off what a folder has listed; nil for one that is no entry.
func nextDirent(b []byte) (name, rest []byte) {
	n, _, names := unix.ParseDirent(b, 1, nil)
	if len(names) == 0 {
		return nil, nil
	}
	return []byte(names[0]), b[n:]
}

// countDirents counts what a folder has listed.
func countDirents(b []byte) int {
	_, n, _ := unix.ParseDirent(b, -1, nil)
	return n
}
