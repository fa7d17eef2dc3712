package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ErrNotRunning means that no control plane runs in a state folder.
var ErrNotRunning = errors.New("no control plane runs")

// stopLook is how often StopRunning looks whether the process has ended.
const stopLook = 20 * time.Millisecond

// StopRunning asks the control plane of a state folder to end, as a SIGTERM does, and waits
// until it has. It returns its process id; ErrNotRunning where none runs. The end of
// the context ends the wait, not the control plane.
func StopRunning(ctx context.Context, state string) (pid int, err error) {
	path := filepath.Join(state, controlDir, lockFile)
	if pid, err = holding(path); err != nil {
		return 0, err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return pid, fmt.Errorf("find the control plane, process %d: %w", pid, err)
	}
	defer process.Release() //nolint:errcheck // only the handle of a foreign process
	// The handle is of the process that has the number now. It is the control
	// plane only if that process has the lock: the number in the file may be out
	// of date.
	if again, err := holding(path); err != nil || again != pid || !opens(pid, path) {
		return pid, errors.Join(err, hinted(fmt.Errorf("the process that holds %s is not known", path), "try again; if it lasts, end agentd by hand"))
	}
	if err := process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return pid, fmt.Errorf("end the control plane, process %d: %w", pid, err)
	}
	tick := time.NewTicker(stopLook)
	defer tick.Stop()
	for {
		if process.Signal(syscall.Signal(0)) != nil {
			return pid, nil
		}
		select {
		case <-ctx.Done():
			return pid, fmt.Errorf("wait for the end of the control plane, process %d: %w", pid, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// holding is the process that holds the lock of a control plane.
func holding(path string) (pid int, err error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return 0, ErrNotRunning
	}
	l := newLock(path)
	free, err := l.TryLock()
	if err != nil {
		return 0, unusable(path, fmt.Errorf("look at %s: %w", path, err))
	}
	if free {
		return 0, errors.Join(l.Unlock(), ErrNotRunning)
	}
	if pid = holder(path); pid <= 1 {
		return 0, hinted(fmt.Errorf("%s does not name the process that holds it", path), "it may be starting: try again")
	}
	return pid, nil
}

// opens reports whether a process has a file open, as far as the system shows
// it.
func opens(pid int, path string) bool {
	want, err := os.Stat(path)
	if err != nil {
		return false
	}
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		_, err := os.Stat("/proc/self/fd")
		return err != nil // a system without /proc: the number is all there is
	}
	for _, e := range entries {
		if got, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && os.SameFile(want, got) {
			return true
		}
	}
	return false
}
