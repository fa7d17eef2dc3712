package workspace

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// parent opens the folder of p and returns it with the last name of p.
func (r *root) parent(p Path) (descriptor, string, error) {
	dir, name := path.Split(string(p))
	d, err := r.dir(Path(strings.TrimSuffix(dir, "/")))
	return d, name, err
}

// dir opens the folder p; "" is the root itself. No step may be a link.
func (r *root) dir(p Path) (descriptor, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(r.file.Fd()), ".", flags, 0)
	if err != nil || p == "" {
		return descriptor(fd), err
	}
	for step := range strings.SplitSeq(string(p), "/") {
		next, err := unix.Openat(fd, step, flags, 0)
		_ = unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return descriptor(fd), nil
}

// checkPath refuses paths that could leave the folder or reach into git's own.
func checkPath(p Path) error {
	s := string(p)
	if s == "" || len(s) > unix.PathMax || path.IsAbs(s) || path.Clean(s) != s || strings.ContainsRune(s, 0) {
		return fmt.Errorf("path %q: not a clean relative path", s)
	}
	for step := range strings.SplitSeq(s, "/") {
		switch {
		case step == "." || step == "..":
			return fmt.Errorf("path %q: leaves the folder", s)
		case isGit(step):
			return fmt.Errorf("path %q: belongs to git", s)
		case strings.HasPrefix(step, stagePrefix):
			return fmt.Errorf("path %q: the name is reserved", s)
		}
	}
	return nil
}

// isGit also finds the spellings that some file systems take for .git: other
// case, invisible characters, trailing dots and blanks, the short name.
func isGit(name string) bool {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
	name, _, _ = strings.Cut(name, ":") // a stream of the folder, where files have those
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == gitName || name == "git~1"
}
