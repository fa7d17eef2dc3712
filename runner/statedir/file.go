package statedir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Errors of OpenFile and ReadFile; they are wrapped with the path.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("it is too large")
)

// OpenFile opens a file with the flags of os.OpenFile; with os.O_CREATE it is made
// for its owner alone. It waits for nobody and follows no link as the last
// element of the path.
//
//	path                           error
//	a regular file                 nil
//	nothing, and no os.O_CREATE    fs.ErrNotExist
//	anything else                  ErrNotRegular
func OpenFile(path string, flag int) (*os.File, error) {
	// Looked at before as well: some devices do something when they are opened.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, notRegular(path)
	}
	const safe = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC
	// Cut off only once it is known what it is.
	f, err := os.OpenFile(path, flag&^os.O_TRUNC|safe, 0o600) //nolint:gosec // the caller's folder
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path)
	}
	if err == nil && flag&os.O_TRUNC != 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadFile returns what a file holds, which is at most so many bytes; a larger one
// is ErrTooLarge.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)}
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}

func notRegular(path string) error {
	return &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
}
