package policy

import (
	"os"
	"syscall"
	"time"
)

// identify returns the identity of a file, the number of its names, and when that last
// changed.
func identify(info os.FileInfo) (id fileID, links int, changed time.Time) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, 0, time.Time{}
	}
	return fileID{uint64(st.Dev), st.Ino}, int(min(st.Nlink, 1<<20)), time.Unix(st.Ctim.Unix()) //nolint:unconvert,gosec // the types differ by system
}
