package files

import (
	"errors"
	"syscall"
	"time"

	"agentctl.dev/agentctl/plugins/sdk"
)

// Waiting for another process that changes a file of the same folder: it holds the lock
// for microseconds. A program that keeps it makes the call fail, not wait.
const (
	folderTries = 400
	folderPause = 5 * time.Millisecond
)

// exclusively runs the last steps of a change while no other process of these tools takes
// its own in the same folder: agents that share files run their tools in processes of
// their own, and the second to write must notice the first.
func (t *target) exclusively(change func() error) error {
	folder, err := t.dir.Open(".")
	if err != nil {
		return err
	}
	defer folder.Close()
	raw, err := folder.SyscallConn()
	if err != nil {
		return err
	}
	for range folderTries {
		var locked error
		if err := raw.Control(func(fd uintptr) { locked = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) }); err != nil {
			return err
		}
		switch {
		case locked == nil:
			return change() // closing the folder releases it
		case errors.Is(locked, syscall.ENOLCK), errors.Is(locked, syscall.ENOTSUP), errors.Is(locked, syscall.EINVAL), errors.Is(locked, syscall.ENOSYS):
			return change() // a file system without locks: the check of the file is what there is
		case !errors.Is(locked, syscall.EWOULDBLOCK) && !errors.Is(locked, syscall.EINTR):
			return locked
		}
		time.Sleep(folderPause)
	}
	return sdk.Errorf("the folder of %s is locked by another process: try again", t.rel)
}
