package policy

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// A decision reads names from the host: those that a pattern of a script expands to, and
// the files in a folder that a command takes as a whole. The model chooses these paths, so
// they are restricted: only folders are opened, only below the workspace or one of
// hostFolders, and outside the workspace never on another file system, since opening it
// could mount it. The matches of a pattern, or the files of a folder, elsewhere are
// unknown.

// hostFolders are the folders outside the workspace whose files rules name: those
// that a sandbox shows, and the user's own.
func hostFolders() []string {
	folders := []string{"/usr", "/etc"}
	if h := home(); h != "" {
		folders = append(folders, realPath(h))
	}
	return folders
}

// errNotRegular is returned for a file that is a folder, device, FIFO or socket.
var errNotRegular = errors.New("not a regular file")

// entries are what was found in one folder.
type entries struct {
	list []os.DirEntry
	// whole reports whether the list is complete.
	whole bool
	// outside reports that the folder lies where nothing is listed.
	outside bool
}

// list returns the content of a folder, at most limit entries. Something that is not a
// folder, or cannot be read, has no entries, as in a shell.
func (w Workspace) list(dir string, limit int) entries {
	resolved := w.realPath(dir, w.realRoot())
	tops, at := []string{w.realRoot()}, 0
	if !inside(resolved, tops[0]) {
		tops = append(tops, hostFolders()...)
		at = slices.IndexFunc(tops, func(top string) bool { return inside(resolved, top) })
	}
	if at < 0 {
		// Whether there is such a folder is known without opening it.
		info, err := os.Lstat(resolved)
		if err != nil || !info.IsDir() {
			return entries{whole: true}
		}
		return entries{outside: true}
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(resolved, tops[at]), "/")
	if rel == "" {
		rel = "."
	}
	f, err := openBeneath(tops[at], rel, at > 0)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR):
		return entries{whole: true}
	default: // a mount point, or a path that changes at this moment
		return entries{outside: true}
	}
	defer f.Close()
	found, err := f.ReadDir(max(limit, 0) + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return entries{whole: true}
	}
	slices.SortFunc(found, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries{list: found, whole: len(found) <= limit}
}
