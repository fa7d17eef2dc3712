package skill

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// errLinked is the error for what is a link, or lies behind one. What rules say of a path
// would be said of another file.
var errLinked = errors.New("it is a link or behind one, and skills are read without following links: put the file itself there")

// Named returns why a name cannot be that of a file of a skill. A name that is written in
// another way than it is judged could be the name of another file.
func Named(name string) error {
	switch {
	case !filepath.IsLocal(name):
		return errors.New("it is not in the folder of the skill")
	case filepath.ToSlash(filepath.Clean(name)) != name:
		return errors.New("write its path in the folder of the skill as it is listed: without . or .., double slashes and a slash at the end")
	}
	return nil
}

// enter opens a folder that is itself in another one: what is opened is what was looked
// at, whatever has been put in its place meanwhile.
func enter(at *os.Root, name string) (*os.Root, error) {
	seen, err := at.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case seen.Mode()&fs.ModeSymlink != 0:
		return nil, errLinked
	case !seen.IsDir():
		return nil, syscall.ENOTDIR
	}
	folder, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := folder.Stat("."); err != nil || !os.SameFile(seen, opened) {
		_ = folder.Close() // nothing was written
		return nil, errLinked
	}
	return folder, nil
}

// beneath opens a folder below another, to which no link leads. The name has slashes.
func beneath(top *os.Root, name string) (*os.Root, error) {
	if name == "." {
		return top.OpenRoot(".")
	}
	at := top
	for step := range strings.SplitSeq(name, "/") {
		next, err := enter(at, step)
		if at != top {
			_ = at.Close() // nothing was written
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// openFile opens a regular file to which no link leads. It does not block on other kinds
// of files, for example a pipe.
func openFile(top *os.Root, name string) (*os.File, error) {
	dir, base := path.Split(name)
	if dir != "" {
		folder, err := beneath(top, strings.TrimSuffix(dir, "/"))
		if err != nil {
			return nil, err
		}
		defer folder.Close() //nolint:errcheck // nothing was written
		top = folder
	}
	seen, err := top.Lstat(base)
	switch {
	case err != nil:
		return nil, err
	case seen.Mode()&fs.ModeSymlink != 0:
		return nil, errLinked
	case !seen.Mode().IsRegular():
		return nil, errNoFile
	}
	f, err := top.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(seen, opened) {
		_ = f.Close() // nothing was written
		return nil, errLinked
	}
	return f, nil
}

var errNoFile = errors.New("it is not a file")
