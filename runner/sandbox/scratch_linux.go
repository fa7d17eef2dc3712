package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// scratch is the folder of one sandbox on the host: an empty folder on which the
// helper builds the view, and the folder for sockets. A lock on it tells the
// folder of a sandbox that stands from one that a killed runner left.
type scratch struct {
	dir  string
	lock *os.File
}

// scratchName is how the folders are called.
const scratchName = "agentctl-sandbox-"

func newScratch(temp string) (*scratch, error) {
	dir, err := os.MkdirTemp(temp, scratchName)
	if err != nil {
		return nil, fmt.Errorf("make a folder for its sandbox: %w", err)
	}
	s := &scratch{dir: dir}
	if s.dir, err = filepath.EvalSymlinks(dir); err == nil { // macOS and some hosts link /tmp
		s.lock, err = lockDir(s.dir)
	}
	for _, d := range []string{s.root(), s.sockets()} {
		if err == nil {
			err = os.Mkdir(d, 0o700)
		}
	}
	if err != nil {
		s.remove()
		return nil, fmt.Errorf("make a folder for its sandbox: %w", err)
	}
	return s, nil
}

func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (s *scratch) root() string    { return filepath.Join(s.dir, "root") }
func (s *scratch) sockets() string { return filepath.Join(s.dir, "s") }

func (s *scratch) remove() {
	if s == nil {
		return
	}
	_ = os.RemoveAll(s.dir)
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

// sweepScratch removes the folders that killed runners of this user left.
func sweepScratch(temp string) {
	if temp == "" {
		temp = os.TempDir()
	}
	d, err := os.Open(temp)
	if err != nil {
		return
	}
	defer func() { _ = d.Close() }()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if !strings.HasPrefix(name, scratchName) {
			continue
		}
		dir := filepath.Join(temp, name)
		var st unix.Stat_t
		if unix.Lstat(dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() {
			continue
		}
		if f, err := lockDir(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = f.Close()
		}
	}
}
