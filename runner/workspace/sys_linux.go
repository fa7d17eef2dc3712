package workspace

import (
	"errors"

	"golang.org/x/sys/unix"
)

// cloneFile shares the blocks of src with dst, where the file system can.
func cloneFile(dst, src int) error { return unix.IoctlFileClone(dst, src) }

// currentTick is the clock that stamps files: a change from now on is not older.
func currentTick() unix.Timespec {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		return unix.Timespec{} // everything counts as just changed
	}
	return ts
}

// exchange swaps two names in one step. ok is false where the file system
// cannot do that.
func exchange(fromDir int, from string, toDir int, to string) (ok bool, err error) {
	err = unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return false, nil
	}
	return true, err
}

// moveNew renames, unless the target exists.
func moveNew(fromDir int, from string, toDir int, to string) error {
	err := unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkNew(fromDir, from, toDir, to)
	}
	return err
}
