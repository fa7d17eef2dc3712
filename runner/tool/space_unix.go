//go:build unix

package tool

import "golang.org/x/sys/unix"

// FreeSpace returns a function that reports what is left on the disk of a folder.
func FreeSpace(dir string) func() (int64, bool) {
	return func() (int64, bool) {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) != nil {
			return 0, false
		}
		return int64(st.Bavail) * int64(st.Bsize), true //nolint:unconvert,gosec,nolintlint // other types elsewhere; no disk is larger
	}
}
