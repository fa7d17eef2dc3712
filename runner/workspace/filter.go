package workspace

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"
)

// filter decides which paths are not part of a workspace.
type filter struct {
	names, paths []string
	skip         map[inode]bool
}

// inode is the identity of a file, whatever path leads to it.
type inode struct{ dev, ino uint64 }

func inodeOf(st *unix.Stat_t) inode { return inode{uint64(st.Dev), st.Ino} } //nolint:unconvert,gosec // the type differs by system

func newFilter(globs, skip []string) (*filter, error) {
	f := &filter{skip: map[inode]bool{}}
	for _, glob := range globs {
		g := strings.TrimSuffix(glob, "/")
		if g == "" || !doublestar.ValidatePattern(g) {
			return nil, fmt.Errorf("workspace.exclude: %q is not a glob", glob)
		}
		if strings.Contains(g, "/") {
			f.paths = append(f.paths, strings.TrimPrefix(g, "/"))
		} else {
			f.names = append(f.names, g)
		}
	}
	for _, p := range skip {
		var st unix.Stat_t
		if p != "" && unix.Stat(p, &st) == nil {
			f.skip[inodeOf(&st)] = true
		}
	}
	return f, nil
}

// excludes reports whether the tree at p is left out.
func (f *filter) excludes(p string, st *unix.Stat_t) bool {
	if f.skip[inodeOf(st)] {
		return true
	}
	for _, g := range f.names {
		if doublestar.MatchUnvalidated(g, path.Base(p)) {
			return true
		}
	}
	for _, g := range f.paths {
		if doublestar.MatchUnvalidated(g, p) {
			return true
		}
	}
	return false
}
