package fstree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Remove removes a tree. Where the simple way fails, because the tree is deeper than
// this process may have files open or a folder is closed even for its owner, each
// folder is moved up into dir before it is emptied. Links are not followed; a dir
// that does not exist is not an error.
func Remove(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	info, lerr := os.Lstat(dir)
	switch {
	case errors.Is(lerr, fs.ErrNotExist):
		return nil
	case lerr != nil || !info.IsDir():
		return short(dir, err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder that is about to go
		return short(dir, err)
	}
	fd, err := unix.Open(dir, openDir, 0)
	if err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	r := &removal{top: fd, buf: make([]byte, direntSize)}
	err = r.run()
	_ = unix.Close(fd)
	if err == nil {
		err = os.Remove(dir)
	}
	return short(dir, err)
}

// short is an error without the path of a file in the tree, which may be very long.
func short(dir string, err error) error {
	if err == nil {
		return nil
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		err = errno
	}
	return fmt.Errorf("remove %s: %w", dir, err)
}

// removal empties one folder.
type removal struct {
	top  int
	next int
	buf  []byte
}

// run removes all entries of top, those included that are moved there.
func (r *removal) run() error {
	for {
		names, err := first(r.top, r.buf)
		if err != nil || len(names) == 0 {
			return err
		}
		var failed error
		gone := 0
		for _, name := range names {
			if err := r.remove(name); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			gone++
		}
		if gone == 0 {
			return failed
		}
	}
}

// first returns the first names of a folder as it is now.
func first(fd int, buf []byte) ([]string, error) {
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		return nil, err
	}
	return readNames(fd, buf)
}

// remove removes an entry of top.
func (r *removal) remove(name string) error {
	err := unix.Unlinkat(r.top, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if rm := unix.Unlinkat(r.top, name, unix.AT_REMOVEDIR); rm == nil {
		return nil
	} else if errors.Is(rm, unix.ENOTDIR) {
		return err
	}
	if openUp(r.top, name) != nil {
		return err
	}
	fd, err := unix.Openat(r.top, name, openDir, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	buf := make([]byte, direntSize)
	for {
		names, err := first(fd, buf)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return unix.Unlinkat(r.top, name, unix.AT_REMOVEDIR)
		}
		for _, sub := range names {
			if err := r.moveUp(fd, sub); err != nil {
				return err
			}
		}
	}
}

// moveUp removes a file of a folder, or moves a folder to top.
func (r *removal) moveUp(fd int, name string) error {
	err := unix.Unlinkat(fd, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) || unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) == nil {
		return nil
	}
	if openUp(fd, name) != nil { // only a folder that is writable can get another parent
		return err
	}
	for {
		r.next++
		to := ".removed-" + strconv.Itoa(r.next)
		var st unix.Stat_t
		if err := unix.Fstatat(r.top, to, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil {
			continue // a program has used the name
		}
		return unix.Renameat(fd, name, r.top, to)
	}
}

// openUp lets the owner of a folder into it.
func openUp(at int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR { // the mode of what a link leads to must not change
		return unix.ENOTDIR
	}
	return unix.Fchmodat(at, name, 0o700, 0)
}
