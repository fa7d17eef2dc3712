package keys

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// MaxSize bounds a value.
	MaxSize = 64 << 10
	// halfWritten begins the name of a value that is being written.
	halfWritten = ".new-"
	// abandoned is the age from which on nobody writes such a file any more.
	abandoned = time.Minute
)

// errNotStored says that there is no value of a name.
var errNotStored = errors.New("not stored")

// keystore is a folder of values. A folder that does not exist is an empty store;
// the first Set makes it. Values never stand in an error.
type keystore struct {
	// Dir is the folder. It holds nothing else. Required.
	Dir string
	// Now stands for the clock. Default: time.Now.
	Now func() time.Time
}

// storeEntry is a name that has a value.
type storeEntry struct {
	Name string
	// Set is when the value was stored.
	Set time.Time
	// Problem is why Get refuses the value; nil says that nothing is seen to be
	// wrong from outside.
	Problem error
}

// Get returns the value of a name; false says that there is none. A value that
// others could have read or changed is an error, never a value.
func (s keystore) Get(name string) (value string, found bool, err error) {
	if err := checkName(name); err != nil {
		return "", false, err
	}
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer root.Close()
	value, err = s.read(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return value, err == nil, err
}

// read takes a value out of what was opened, and judges just that: a name can be
// made to mean another file after a look at it, and a pipe must not block.
func (s keystore) read(root *os.Root, name string) (string, error) {
	path := filepath.Join(s.Dir, name)
	before, err := root.Lstat(name)
	if err != nil {
		return "", err
	}
	if err := s.usable(before); err != nil {
		return "", err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("open a stored value: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("look at a stored value: %w", err)
	case !os.SameFile(before, info):
		return "", problem("%s changes while it is read", path)
	case info.Mode() != before.Mode():
		return "", problem("the mode of %s changes while it is read", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxSize+3))
	if err != nil {
		return "", fmt.Errorf("read a stored value: %w", err)
	}
	text, err := clean(b)
	if err != nil {
		return "", problem("%s: %w", path, err).hint("store the value anew: agentctl auth set " + name)
	}
	return text, nil
}

// Set stores the value of a name, in place of the one that was stored before. It
// is either stored as a whole and survives a crash of the machine, or not at all.
func (s keystore) Set(name, value string) (err error) {
	if err := checkName(name); err != nil {
		return err
	}
	if value, err = clean([]byte(value)); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the stored values: %w", err)
	}
	root, err := s.open()
	if err != nil {
		return err
	}
	defer root.Close()
	s.sweep(root)
	draft := halfWritten + rand.Text()
	defer func() {
		if err != nil {
			_ = root.Remove(draft) // it may not be there; the error is told
			err = fmt.Errorf("store %s: %w", name, err)
		}
	}()
	if err := write(root, draft, value); err != nil {
		return err
	}
	if err := root.Rename(draft, name); err != nil {
		return err
	}
	return flush(root)
}

func write(root *os.Root, name, value string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Sync(), f.Close())
}

// flush makes durable which names there are.
func flush(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// sweep removes what a killed Set has left: it holds a value under no name. What
// cannot be removed now is tried again the next time.
func (s keystore) sweep(root *os.Root) {
	found, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return
	}
	for _, f := range found {
		if !strings.HasPrefix(f.Name(), halfWritten) {
			continue
		}
		if info, err := root.Lstat(f.Name()); err == nil && s.now().Sub(info.ModTime()) > abandoned {
			_ = root.Remove(f.Name())
		}
	}
}

// Remove forgets the value of a name; errNotStored says that there was none.
func (s keystore) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", name, errNotStored)
	}
	if err != nil {
		return err
	}
	defer root.Close()
	s.sweep(root)
	if err := root.Remove(name); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", name, errNotStored)
	} else if err != nil {
		return fmt.Errorf("remove the value of %s: %w", name, err)
	}
	return flush(root)
}

// List returns the names that have a value, sorted. It opens no value.
func (s keystore) List() ([]storeEntry, error) {
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	found, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list the stored values: %w", err)
	}
	var entries []storeEntry
	for _, f := range found {
		if checkName(f.Name()) != nil {
			continue
		}
		info, err := root.Lstat(f.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("look at a stored value: %w", err)
		}
		entries = append(entries, storeEntry{f.Name(), info.ModTime(), s.usable(info)})
	}
	return entries, nil
}

func (s keystore) usable(info fs.FileInfo) error {
	path := filepath.Join(s.Dir, info.Name())
	if !info.Mode().IsRegular() {
		return problem("%s is not a regular file", path).hint("remove it, and store the value with agentctl auth set " + info.Name())
	}
	return private(info, path, 0o600)
}

// open opens the folder, if it is one of the owner's alone. From then on names
// are looked up in what was opened, and lead to nothing outside of it.
func (s keystore) open() (*os.Root, error) {
	before, err := os.Lstat(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("look at the folder of the stored values: %w", err)
	}
	if !before.IsDir() {
		return nil, problem("%s is no folder: values are stored in a folder of their own, not behind a link", s.Dir)
	}
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the stored values: %w", err)
	}
	info, err := root.Stat(".")
	switch {
	case err != nil:
		err = fmt.Errorf("look at the folder of the stored values: %w", err)
	case !os.SameFile(before, info):
		err = problem("%s changes while it is opened", s.Dir)
	default:
		err = private(info, s.Dir, 0o700)
	}
	if err != nil {
		_ = root.Close() // nothing was done in it
		return nil, err
	}
	return root, nil
}

// private says what is wrong with a file or folder that others may read or
// change, or could have made.
func private(info fs.FileInfo, path string, mode fs.FileMode) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int64(st.Uid) != int64(os.Geteuid()) {
		return problem("%s belongs to user %d and not to you", path, st.Uid).hint("remove it, or become its owner")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return problem("%s has mode %04o: others may read or change it", path, info.Mode().Perm()).
			hint(fmt.Sprintf("chmod %o %s; and if others were there, change the value", mode, path))
	}
	return nil
}

func (s keystore) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}
