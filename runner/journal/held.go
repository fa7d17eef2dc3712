package journal

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"
)

// Held reports whether a process writes the journal in dir at this moment.
func Held(dir string) bool {
	f := flock.New(filepath.Join(dir, lockFile), flock.SetFlag(os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK))
	free, err := f.TryRLock() // a writer that opens meanwhile is patient
	if free {
		_ = f.Unlock()
	}
	return err == nil && !free
}
