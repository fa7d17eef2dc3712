package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// scratch is what one sandbox has on the host: an empty folder on which the
// helper builds the view, and a file system in memory for sockets, which ends
// with the sandbox. A lock on the folder distinguishes a sandbox in use from
// one that a killed runner left. Nothing that programs write is in the folder.
type scratch struct {
	dir  string
	lock *os.File
	// sockets is that file system, inside its folder that programs can write to: what
	// is there is reached from here and never by its path.
	sockets, inside *os.File
	// owner of what programs of the sandbox write to.
	uid, gid int
}

// scratchName is how the folders are called.
const scratchName = "sandbox-"

// scratchHome is the folder of this user for all scratch folders, so that
// abandoned ones can be found without reading all of /tmp. Where another user
// has taken the name there is none, and nothing is swept.
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

// ScratchDir is the folder of this user for files that need not survive a
// reboot, for Options.State: a new state folder, as each CI job has, then needs
// no probe of its own. "" where there is no such folder that is safe.
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
	if err == nil {
		err = os.Mkdir(s.root(), 0o700)
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

func (s *scratch) root() string { return filepath.Join(s.dir, "root") }

// take takes the file system of the sockets.
func (s *scratch) take(sockets *os.File) error {
	if sockets == nil {
		return errors.New("the helper made no folder for sockets")
	}
	s.sockets = sockets
	fd, err := unix.Openat(int(sockets.Fd()), spec.SocketFolder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the folder for sockets: %w", err)
	}
	s.inside = os.NewFile(uintptr(fd), spec.SocketDir)
	return nil
}

// socket creates a folder for one plugin's socket and opens it. Programs inside
// may replace it by a link at once, hence no path is used.
func (s *scratch) socket(name string) (*os.File, error) {
	at := int(s.inside.Fd())
	if err := unix.Mkdirat(at, name, 0o700); err != nil {
		return nil, err
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if s.uid != os.Getuid() {
		if err := unix.Fchown(fd, s.uid, s.gid); err != nil {
			_ = unix.Close(fd)
			return nil, err
		}
	}
	return os.NewFile(uintptr(fd), filepath.Join(spec.SocketDir, name)), nil
}

// away moves a socket out of its folder, to a place that is not visible inside.
func (s *scratch) away(folder *os.File, base string) (string, error) {
	all, name := int(s.sockets.Fd()), "p"+filepath.Base(folder.Name())
	return fmt.Sprintf("/proc/self/fd/%d/%s", all, name), unix.Renameat(int(folder.Fd()), base, all, name)
}

func (s *scratch) remove() {
	if s == nil {
		return
	}
	_ = os.RemoveAll(s.dir)
	for _, f := range []*os.File{s.inside, s.sockets, s.lock} {
		if f != nil {
			_ = f.Close()
		}
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
		return // another process creates it right now; the next runner sweeps
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
		if f, err := lockDir(dir, unix.LOCK_EX|unix.LOCK_NB); err == nil { // no process holds it
			_ = os.RemoveAll(dir)
			_ = f.Close()
		}
	}
}
