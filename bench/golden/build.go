package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// build is a folder with the programs of one build.
type build struct{ name, dir string }

// programs of a build.
func programs() []string {
	return []string{"agentctl", "agentctl-tools", "agentctl-sandbox", "agentctl-entry"}
}

// escapes is a program that older builds do not have.
const escapes = "agentctl-escape"

// slot is a folder in which one case is played at a time. The programs of the build
// that plays are its folder bin, whichever build that is.
type slot struct {
	dir string
	// in is the name of the build that is in place.
	in string
	// port of the model server, the same for both builds.
	port int
}

func newSlots(work string, n int, builds ...build) ([]*slot, error) {
	// Programs there are refused by every build, and equal refusals compare nothing.
	for dir := work; dir != "/"; dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.Mode().Perm()&0o022 != 0 && st.Mode()&fs.ModeSticky == 0 {
			return nil, fmt.Errorf("work in %s: others can write to %s; name another folder with -work or TMPDIR", work, dir)
		}
	}
	var all []*slot
	var err error
	for i := range n {
		s := &slot{dir: filepath.Join(work, "s"+strconv.Itoa(i))}
		if err := clear(s.dir); err != nil {
			return nil, err
		}
		for _, b := range builds {
			if err := s.install(b); err != nil {
				return nil, fmt.Errorf("copy the programs of the %s build: %w", b.name, err)
			}
		}
		if s.port, err = freePort(20000 + (os.Getpid()*7+i*101)%10000); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// freePort is the first free port from one on. They lie below those that the kernel
// gives to clients: a port has to be free again whenever a case needs it.
func freePort(from int) (int, error) {
	for port := from; port < from+1000; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)) //nolint:noctx // returns at once
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a port for the model server: none from %d to %d is free", from, from+999)
}

func (s *slot) path(name ...string) string {
	return filepath.Join(append([]string{s.dir}, name...)...)
}

func (s *slot) install(b build) error {
	to := s.path("bin-" + b.name)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, p := range programs() {
		if err := copyFile(filepath.Join(b.dir, p), filepath.Join(to, p), 0o755); err != nil {
			return err
		}
	}
	err := copyFile(filepath.Join(b.dir, escapes), filepath.Join(to, escapes), 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// use puts a build in place.
func (s *slot) use(b build) error {
	if s.in == b.name {
		return nil
	}
	if s.in != "" {
		if err := os.Rename(s.path("bin"), s.path("bin-"+s.in)); err != nil {
			return err
		}
		s.in = ""
	}
	if err := os.Rename(s.path("bin-"+b.name), s.path("bin")); err != nil {
		return err
	}
	s.in = b.name
	return nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}

// clear removes a folder, also where folders in it are not writable.
func clear(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) // the removal below reports what is left
		}
		return nil
	})
	return os.RemoveAll(dir)
}
