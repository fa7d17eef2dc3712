package workspace

import (
	"bytes"
	"encoding/binary"
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

// nextDirent takes the next name off what a folder has listed; nil for one that is no entry.
func nextDirent(b []byte) (name, rest []byte) {
	b, rest = cutDirent(b)
	const ino, head = 8, 19 // struct linux_dirent64
	if len(b) <= head || binary.NativeEndian.Uint64(b[:ino]) == 0 {
		return nil, rest
	}
	name = b[head:]
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	if len(name) == 0 || string(name) == "." || string(name) == ".." {
		return nil, rest
	}
	return name, rest
}

// countDirents counts what a folder has listed.
func countDirents(b []byte) (n int) {
	for len(b) > 0 {
		_, b = cutDirent(b)
		n++
	}
	return n
}

func cutDirent(b []byte) (one, rest []byte) {
	const at = 16 // d_reclen
	if len(b) < at+2 {
		return nil, nil
	}
	n := min(int(binary.NativeEndian.Uint16(b[at:])), len(b))
	if n == 0 {
		return nil, nil
	}
	return b[:n], b[n:]
}
