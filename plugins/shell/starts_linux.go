package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/shell/internal/record"
)

// addPrograms allows to start programs, the interpreter that a script names in its first
// line, and the loader that a program names.
func (r *rules) addPrograms(names []string, path, dir string) error {
	done := map[string]*started{}
	for _, name := range names {
		for _, file := range programFiles(name, path, dir) {
			if _, err := r.addProgram(file, done, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// further are patterns of folders, beside those of the path, in which a program has files
// that it starts: git those of its commands, PostgreSQL's clients of Debian those that they
// stand for.
func further(name string) []string {
	switch {
	case name == "git" || strings.HasPrefix(name, "git-"):
		return []string{"/usr/lib/git-core", "/usr/libexec/git-core"}
	case name == "psql", strings.HasPrefix(name, "pg_"):
		return []string{"/usr/lib/postgresql/*/bin"}
	}
	return nil
}

// programFiles are the files that a name can mean: the first in a folder of the path, or all
// where there are further folders, and those in them.
func programFiles(name, path, dir string) (files []string) {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	more := further(name)
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(dir, folder)
		}
		file := filepath.Join(folder, name)
		if unix.Access(file, unix.X_OK) == nil {
			files = append(files, file)
			if len(more) == 0 {
				break
			}
		}
	}
	for _, pattern := range more {
		found, err := filepath.Glob(filepath.Join(pattern, name))
		if err == nil { // a name can hold what makes no pattern
			files = append(files, found...)
		}
	}
	return files
}

// maxInterpreters is how many scripts may be the interpreter of one another.
const maxInterpreters = 4

// started is a program with what the kernel starts with it.
type started struct {
	stat  unix.Stat_t
	steps []record.Step
	// whole reports that all of that is known.
	whole bool
}

// addProgram allows to start a program, with all that the kernel starts with it, and returns
// that.
func (r *rules) addProgram(file string, done map[string]*started, depth int) (*started, error) {
	if s := done[file]; s != nil || depth > maxInterpreters {
		return s, nil
	}
	s := &started{}
	done[file] = s
	b := system.find(file, &s.stat)
	if b == nil {
		f, err := os.OpenFile(file, unix.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return s, r.followed(file) // it can be started without being read
		}
		defer f.Close()
		if b, err = read(f, &s.stat); err != nil {
			return s, fmt.Errorf("bind the call to %s: %w", file, err)
		}
		system.keep(file, b, &s.stat)
	}
	if err := r.rule(b.at, &s.stat, file, mayRun); err != nil {
		return s, err
	}
	s.whole = true
	for i, next := range b.starts {
		with, err := r.addProgram(next, done, depth+1)
		if err != nil {
			return s, err
		}
		if i == 0 { // what comes after it, the kernel does not start
			s.follows(next, with)
		}
	}
	if s.whole && b.path != "" {
		r.rights.Whole(b.path, &s.stat, s.steps)
	}
	return s, nil
}

// follows notes what is started with the program.
func (s *started) follows(name string, with *started) {
	if with == nil || !with.whole {
		s.whole = false
		return
	}
	step, ok := record.NewStep(name, &with.stat)
	s.whole = ok
	s.steps = append([]record.Step{step}, with.steps...)
}

// followed allows to start a file that cannot be read.
func (r *rules) followed(file string) error {
	at, err := unix.Open(file, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return fmt.Errorf("bind the call to %s: %w", file, err)
	}
	defer func() { _ = unix.Close(at) }()
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return fmt.Errorf("bind the call to %s: %w", file, err)
	}
	return r.rule(at, &st, file, mayRun)
}

// executable is the file of a program that is open.
type executable struct {
	at int
	// path has no links; "" if it is not known.
	path string
	// starts are what the kernel starts with it, and what env would find for it.
	starts []string
	// script reports that the file is not one of machine code.
	script bool
}

func read(f *os.File, st *unix.Stat_t) (*executable, error) {
	b := &executable{at: int(f.Fd())} //nolint:gosec // a descriptor
	if err := unix.Fstat(b.at, st); err != nil {
		return nil, err
	}
	if at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", b.at)); err == nil {
		b.path = at
	}
	b.starts, b.script = interpreters(f)
	return b, nil
}

// executables are those of the system that calls have been allowed to start, by name. They are
// read once, and kept open: most calls start the same few.
type executables struct {
	mu    sync.Mutex
	known map[string]*keptExecutable
}

type keptExecutable struct {
	executable
	stat unix.Stat_t
}

var system = &executables{known: map[string]*keptExecutable{}}

// maxKept is how many programs are kept.
const maxKept = 64

// find returns a program that is as it was when it was read, with its state; nil for another.
func (k *executables) find(file string, st *unix.Stat_t) *executable {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.known[file]
	if p == nil || unix.Stat(file, st) != nil || st.Dev != p.stat.Dev || st.Ino != p.stat.Ino || st.Ctim != p.stat.Ctim {
		return nil
	}
	return &p.executable
}

// keep keeps a program for good: its descriptor may be in use. Scripts are left out, since
// what they start depends on the path, and so is what is not of the system: it changes.
func (k *executables) keep(file string, b *executable, st *unix.Stat_t) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b.script || !strings.HasPrefix(b.path, "/usr/") || len(k.known) >= maxKept || k.known[file] != nil {
		return
	}
	at, err := unix.Open(b.path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	var is unix.Stat_t
	if err != nil {
		return
	}
	if unix.Fstat(at, &is) != nil || is.Dev != st.Dev || is.Ino != st.Ino {
		_ = unix.Close(at)
		return
	}
	k.known[file] = &keptExecutable{executable{at, b.path, b.starts, false}, *st}
}
