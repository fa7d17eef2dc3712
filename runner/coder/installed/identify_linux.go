package installed

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// identify returns the identity of a file on this host, and when it was last changed in any way.
func identify(info fs.FileInfo) (id string, changed time.Time, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", time.Time{}, false
	}
	changed = time.Unix(st.Ctim.Unix())
	return fmt.Sprintf("%d:%d %d:%d %d", st.Dev, st.Ino, st.Uid, st.Gid, changed.UnixNano()), changed, true
}
