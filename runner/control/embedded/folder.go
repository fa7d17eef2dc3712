package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"agentctl.dev/agentctl/runner/statedir"
)

// Names below the state folder.
const (
	controlDir     = "control"
	lockFile       = "lock"
	etcdDir        = "etcd"
	clientSocket   = "etcd.sock"
	tokensFile     = "tokens"
	kubeconfigFile = "kubeconfig"
	portFile       = "port"
	auditFile      = "audit.jsonl"
	eventsFile     = "events.jsonl"
)

// patience is how long a start waits for the lock: a process that was killed
// this very moment keeps it until the system has cleared it away.
const patience = 500 * time.Millisecond

// maxLock bounds the file of the lock, which holds a number.
const maxLock = 32

// longestSocket is how long the path of a unix socket may be on Linux, without
// the zero at its end; elsewhere it is a little less.
const longestSocket = 103

// HeldError means that another control plane keeps its state in the folder.
type HeldError struct {
	Dir string
	// PID is the process id of the holder; 0: not known.
	PID int
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("control plane in %s: another process runs it", e.Dir)
	}
	return fmt.Sprintf("control plane in %s: process %d runs it", e.Dir, e.PID)
}

// folder is <state>/control, held by this process.
type folder struct {
	dir  string
	lock *flock.Flock
}

// openFolder creates the folder if needed and takes its lock.
func openFolder(ctx context.Context, state string) (*folder, error) {
	dir, err := privateFolder(state)
	if err != nil {
		return nil, err
	}
	if s := filepath.Join(dir, clientSocket); len(s) > longestSocket {
		return nil, hinted(fmt.Errorf("the path of the socket %s has %d bytes, the system takes %d", s, len(s), longestSocket), "choose a shorter --state")
	}
	path := filepath.Join(dir, lockFile)
	l := newLock(path)
	ok, err := l.TryLock()
	if err == nil && !ok {
		ctx, cancel := context.WithTimeout(ctx, patience)
		ok, err = l.TryLockContext(ctx, 5*time.Millisecond)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
	}
	if err != nil {
		return nil, unusable(path, fmt.Errorf("lock %s: %w", dir, err))
	}
	if !ok {
		return nil, &HeldError{Dir: dir, PID: holder(path)}
	}
	// Only the lock itself counts. The number is for people; after a kill it is that
	// of a process that is gone, until the next start.
	if err := sign(path); err != nil {
		_ = l.Unlock()
		return nil, unusable(path, fmt.Errorf("lock %s: %w", dir, err))
	}
	return &folder{dir: dir, lock: l}, nil
}

// privateFolder creates <state>/control, or ensures that only its owner can
// enter: the sockets in it have no authentication.
func privateFolder(state string) (string, error) {
	dir := filepath.Join(state, controlDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of the control plane: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("look at the folder of the control plane: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is no folder", dir)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return "", hinted(fmt.Errorf("%s belongs to uid %d, who could read everything in it", dir, s.Uid), "start it as that user, or choose another --state")
	}
	if info.Mode().Perm() != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder is entered
			return "", fmt.Errorf("make %s private: %w", dir, err)
		}
	}
	return dir, nil
}

// newLock returns a lock that does not block on a pipe and does not create a
// file through a link.
func newLock(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK), flock.SetPermissions(0o600))
}

// sign writes the identity of this process into a lock file.
func sign(path string) error {
	f, err := statedir.OpenFile(path, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	return errors.Join(err, f.Close())
}

// unusable adds a next step to an error about a file of the folder when
// something other than a file is in its place.
func unusable(path string, err error) error {
	if errors.Is(err, statedir.ErrNotRegular) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EISDIR) {
		return hinted(err, "move what stands there away: "+path)
	}
	return err
}

// holder is the process that holds a lock; 0: unknown. The kernel knows it; the
// file may still name an earlier process.
func holder(path string) int {
	if pid := lockedBy(path); pid > 0 {
		return pid
	}
	b, err := statedir.ReadFile(path, maxLock)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

// release lets go of the folder. Its lock names no process then.
func (f *folder) release() error {
	return errors.Join(os.Truncate(f.path(lockFile), 0), f.lock.Unlock())
}

// writePrivate replaces a file as a whole: a reader finds the old text or the
// new one, also after a crash of the machine.
func writePrivate(path string, text []byte) error {
	if old, err := statedir.ReadFile(path, int64(len(text))); err == nil && bytes.Equal(old, text) {
		return os.Chmod(path, 0o600)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // gone after the rename
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, fs.ErrInvalid) {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
