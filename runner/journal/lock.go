package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"agentctl.dev/agentctl/runner/statedir"
)

const lockFile = "lock"

// HeldError reports that another process writes the journal.
type HeldError struct {
	Run string
	// Holder is the program and its process id, or "another process".
	Holder string
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("run %q: its journal is being written by %s", e.Run, e.Holder)
}

// lock is <run>/lock. Only the lock itself counts; the text in the file is for
// people and may be that of a holder long gone.
type lock struct{ flock *flock.Flock }

// Locked calls do while no process writes the journal in dir, and none can begin to. Where
// one does, the error is a *HeldError.
func Locked(ctx context.Context, dir, run string, do func() error) error {
	l, err := acquireLock(ctx, dir, run, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(), l.release())
}

// patience is how long Open waits for the lock: a process that was killed this
// very moment keeps it until the system has cleared it away.
const patience = 500 * time.Millisecond

func acquireLock(ctx context.Context, dir, run string, wait time.Duration) (*lock, error) {
	path := filepath.Join(dir, lockFile)
	f := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK), flock.SetPermissions(0o600))
	ok, err := f.TryLock()
	if err == nil && !ok && wait > 0 {
		ctx, cancel := context.WithTimeout(ctx, wait)
		ok, err = f.TryLockContext(ctx, 5*time.Millisecond)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("run %q: lock journal: %w", run, err)
	}
	if !ok {
		return nil, &HeldError{Run: run, Holder: readHolder(path).String()}
	}
	text := strconv.Itoa(os.Getpid()) + " " + strconv.QuoteToASCII(filepath.Base(os.Args[0])) + "\n"
	if err := sign(path, text); err != nil {
		_ = f.Unlock()
		return nil, fmt.Errorf("run %q: lock journal: %w", run, err)
	}
	return &lock{f}, nil
}

// sign writes into the file of a lock, and into no other that a link leads to.
func sign(path, text string) error {
	f, err := statedir.OpenFile(path, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Holder is the process that writes a journal.
type Holder struct {
	PID int
	// Program is its name, "" where that is not known.
	Program string
}

func (h Holder) String() string {
	switch {
	case h.PID == 0:
		return "another process"
	case h.Program == "":
		return fmt.Sprintf("process %d", h.PID)
	}
	return fmt.Sprintf("%s (process %d)", h.Program, h.PID)
}

// HeldBy returns the process that writes the journal in dir at this moment, if there is
// one.
func HeldBy(dir string) (by Holder, held bool) {
	if !Held(dir) {
		return Holder{}, false
	}
	return readHolder(filepath.Join(dir, lockFile)), true
}

func readHolder(path string) Holder {
	b, err := readCapped(path, 4096)
	if err != nil {
		return Holder{}
	}
	pid, quoted, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 0 {
		return Holder{}
	}
	name, _ := strconv.Unquote(quoted) // "" if there is none
	return Holder{PID: n, Program: name}
}

func (l *lock) release() error { return l.flock.Unlock() }
