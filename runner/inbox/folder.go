package inbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"agentctl.dev/agentctl/runner/statedir"
)

const (
	// Most bounds how many names one call of Names returns: further files are listed once
	// these are gone.
	Most = 256
	// Looked bounds how many names one call of Names reads.
	Looked = 16 << 10
)

// ValidID reports whether an id can be that of a file: it neither leads out of a folder
// nor is hidden in it.
func ValidID(id string) bool { return pattern().MatchString(id) }

var pattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-z][0-9a-z_-]{0,63}$`) })

// Folder is where other processes put files for a run. Only plain files of the run's own
// user count, in a folder to which no other user can write.
type Folder struct {
	// Dir is the folder.
	Dir string
	// Scratch is the folder of a file until it is complete, on the same disk; "" is Dir.
	Scratch string
	// UID is the user who must own the folder and its files.
	UID int
}

// NewFolder returns the folder dir, for the user of this process.
func NewFolder(dir string) Folder { return Folder{Dir: dir, UID: os.Geteuid()} }

// Put stores a file: complete and durable, or not at all.
func (f *Folder) Put(name string, raw []byte) error {
	if err := f.Trust(); err != nil {
		return err
	}
	scratch := f.Scratch
	if scratch == "" {
		scratch = f.Dir
	}
	temporary := filepath.Join(scratch, "."+name)
	// It may be left of a process that was killed while it wrote the same file. If it
	// cannot be removed, the next line fails.
	_ = os.Remove(temporary)
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(raw)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(temporary, filepath.Join(f.Dir, name))
	}
	if err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return flush(f.Dir)
}

// flush makes the names in a folder durable. It ignores a folder that is gone: no file is
// left in it.
func flush(dir string) error {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Remove removes a file; it ignores a missing one.
func (f *Folder) Remove(name string) error {
	if err := os.Remove(filepath.Join(f.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Trust reports whether only the owner of the folder can have written to it.
func (f *Folder) Trust() error {
	info, err := os.Lstat(f.Dir)
	if err != nil {
		return err
	}
	return f.trusted(info)
}

func (f *Folder) trusted(info fs.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", f.Dir)
	}
	return f.owned(info)
}

func (f *Folder) owned(info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int64(s.Uid) != int64(f.UID) {
		return errors.New("it belongs to another user")
	}
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("other users can write to it")
	}
	return nil
}

// Names lists the files whose names have a prefix, and after them what is not a file: that
// may be something that cannot be removed. It fails when the folder cannot be trusted; all
// is false when it holds too much.
func (f *Folder) Names(prefix string) (names []string, all bool, err error) {
	d, err := os.OpenFile(f.Dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		if why := f.Trust(); why != nil { // a better reason
			err = why
		}
		return nil, true, err
	}
	defer d.Close() //nolint:errcheck // nothing was written
	info, err := d.Stat()
	if err == nil {
		err = f.trusted(info)
	}
	if err != nil {
		return nil, true, err
	}
	var others []string
	for seen := 0; !all && seen < Looked; {
		entries, err := d.ReadDir(Most)
		for _, e := range entries {
			switch {
			case !strings.HasPrefix(e.Name(), prefix):
			case e.Type().IsRegular():
				names = append(names, e.Name())
			default:
				others = append(others, e.Name())
			}
		}
		all = err != nil // the end, or entries that cannot be read now and are read the next time
		seen += len(entries)
	}
	slices.Sort(names)
	slices.Sort(others)
	return slices.Concat(names[:min(len(names), Most)], others[:min(len(others), Most)]), all, nil
}

// Read reads a plain file of our own user, of at most so many bytes.
func (f *Folder) Read(name string, limit int) ([]byte, error) {
	file, err := statedir.OpenFile(filepath.Join(f.Dir, name), os.O_RDONLY)
	if errors.Is(err, statedir.ErrNotRegular) {
		return nil, errors.New("it is not a regular file") // without the path, since the error is recorded
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := f.owned(info); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(file, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return raw, nil
}
