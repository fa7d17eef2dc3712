package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// maxSocketPath is what fits into a sockaddr_un, with its final NUL.
const maxSocketPath = 107

// inside is what go-plugin on both sides adds to our folder, at its longest.
const inside = "/plugin-dir4294967295/plugin4294967295"

// folderName is how the folders for sockets are called.
const folderName = "plugin-"

// folder is the folder of a program's socket. A lock on it distinguishes the folder of a
// running program from one that a killed host has left.
type folder struct {
	path string
	// home holds the folders of this user; "" is one that holds others' things too.
	home string
	lock *os.File
	once sync.Once
}

// newFolder makes a folder that only this user may enter. Where the system's
// temporary folder is too deep for a socket, /tmp serves.
func newFolder(base string) (*folder, error) {
	candidates := []string{base}
	if base == "" {
		candidates = []string{os.TempDir(), "/tmp"}
	}
	for _, c := range candidates {
		home := c
		if base == "" {
			home = filepath.Join(c, "agentctl-"+strconv.Itoa(os.Getuid()))
		}
		if len(filepath.Join(home, folderName+"4294967295")+inside) > maxSocketPath {
			continue
		}
		f, err := makeFolder(home, c)
		if err != nil {
			return nil, fmt.Errorf("folder for its socket: %w", err)
		}
		return f, nil
	}
	return nil, fmt.Errorf("folder for its socket: the path of %s is too long for a unix socket (%d bytes)", candidates[0], maxSocketPath)
}

// makeFolder makes a folder in home, or in otherwise if another user has taken that name.
func makeFolder(home, otherwise string) (*folder, error) {
	f := &folder{home: home}
	if !ours(home) {
		f.home, home = "", otherwise
	} else if all, err := lock(home, syscall.LOCK_SH); err == nil { // until the new one is locked too
		defer func() { _ = all.Close() }()
	}
	var err error
	if f.path, err = os.MkdirTemp(home, folderName); err != nil { // mode 0700
		return nil, err
	}
	f.lock, err = lock(f.path, syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.path))
	}
	return f, nil
}

// ours makes a folder of this user, and reports whether no other user can change it.
func ours(dir string) bool {
	_ = os.Mkdir(dir, 0o700)
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 || info.Mode()&os.ModeSymlink != 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}

func lock(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// remove removes the folder, and those that killed hosts have left. It may be
// called more than once.
func (f *folder) remove() {
	f.once.Do(func() {
		_ = os.RemoveAll(f.path)
		_ = f.lock.Close()
		if f.home != "" {
			sweep(f.home)
		}
	})
}

// sweep removes the folders of this user that are not locked.
func sweep(home string) {
	all, err := lock(home, syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return // another process is just making one; the next end sweeps
	}
	defer func() { _ = all.Close() }()
	list, err := os.ReadDir(home)
	if err != nil {
		return
	}
	for _, e := range list {
		dir := filepath.Join(home, e.Name())
		if !e.IsDir() || !strings.HasPrefix(e.Name(), folderName) {
			continue
		}
		if f, err := lock(dir, syscall.LOCK_EX|syscall.LOCK_NB); err == nil { // not locked
			_ = os.RemoveAll(dir)
			_ = f.Close()
		}
	}
}
