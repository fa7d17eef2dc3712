package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// scratch is the folder of one sandbox on the host: an empty folder on which the
// helper builds the view, and the folder for sockets. A lock on it tells the
// folder of a sandbox that stands from one that a killed runner left.
type scratch struct {
	dir  string
	lock *os.File
	// owner of what programs of the sandbox write to.
	uid, gid int
}

// scratchName is how the folders are called.
const scratchName = "sandbox-"

// scratchHome is the folder of this user for all of them, so that those which
// are left can be found without reading all of /tmp. Where somebody else has
// taken the name there is none, and nothing is swept.
func scratchHome(temp string) string {
	if temp == "" {
		temp = os.TempDir()
	}
	dir := filepath.Join(temp, "agentctl-"+strconv.Itoa(os.Getuid()))
	_ = os.Mkdir(dir, 0o700)
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil || st.Mode != unix.S_IFDIR|0o700 || int(st.Uid) != os.Getuid() {
		return ""
	}
	return dir
}

// ScratchDir is the folder of this user that holds what the host forgets at a
// reboot, for Options.State: a new state folder, as each CI job has, then needs no
// probe of its own. "" where there is none that is safe.
func ScratchDir() string { return scratchHome("") }

func newScratch(temp string) (*scratch, error) {
	if home := scratchHome(temp); home != "" {
		temp = home
		if f, err := lockDir(home, unix.LOCK_SH); err == nil { // until the new one is locked too
			defer func() { _ = f.Close() }()
		}
	}
	dir, err := os.MkdirTemp(temp, scratchName)
	if err != nil {
		return nil, fmt.Errorf("make a folder for its sandbox: %w", err)
	}
	s := &scratch{dir: dir, uid: os.Getuid(), gid: os.Getgid()}
	if s.dir, err = filepath.EvalSymlinks(dir); err == nil { // macOS and some hosts link /tmp
		s.lock, err = lockDir(s.dir, unix.LOCK_EX|unix.LOCK_NB)
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

func lockDir(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (s *scratch) root() string    { return filepath.Join(s.dir, "root") }
func (s *scratch) sockets() string { return filepath.Join(s.dir, "s") }

// give makes the folder for sockets another user's, whom root has programs be.
func (s *scratch) give(uid, gid int) error {
	if s.uid, s.gid = uid, gid; uid == os.Getuid() {
		return nil
	}
	return os.Chown(s.sockets(), uid, gid)
}

// socket makes a folder for one plugin's socket.
func (s *scratch) socket(name string) (string, error) {
	dir := filepath.Join(s.sockets(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	if s.uid == os.Getuid() {
		return dir, nil
	}
	return dir, os.Chown(dir, s.uid, s.gid)
}

// outside is where a plugin's socket is that has been taken away from the view.
func (s *scratch) outside(name string) string { return filepath.Join(s.dir, "p"+name) }

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
	home := scratchHome(temp)
	if home == "" {
		return
	}
	all, err := lockDir(home, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return // somebody makes one right now; the next runner sweeps
	}
	defer func() { _ = all.Close() }()
	list, err := os.ReadDir(home)
	if err != nil {
		return
	}
	for _, e := range list {
		dir := filepath.Join(home, e.Name())
		if !e.IsDir() || !strings.HasPrefix(e.Name(), scratchName) {
			continue
		}
		if f, err := lockDir(dir, unix.LOCK_EX|unix.LOCK_NB); err == nil { // nobody holds it
			_ = os.RemoveAll(dir)
			_ = f.Close()
		}
	}
}
