package files

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// TestAMountThatKeepsAFileIsNamed: a sandbox holds a file read-only that the policies deny to
// edit, where the system speaks of a device that is busy.
func TestAMountThatKeepsAFileIsNamed(t *testing.T) {
	w := &workspace{dir: "/w"}
	for _, errno := range []syscall.Errno{syscall.EBUSY, syscall.EROFS} {
		err := w.fail("write", "LICENSE", &fs.PathError{Op: "rename", Path: "LICENSE", Err: errno})
		if !strings.Contains(err.Error(), "write LICENSE: it is read-only in the sandbox of this run") {
			t.Errorf("%v: %v", errno, err)
		}
	}
}
