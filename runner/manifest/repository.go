package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// RepositoryPolicies is the folder of the policies that a repository brings, in the
// folder of its files.
const RepositoryPolicies = ".agentctl/policies"

// The limits of the policies of a repository: nobody may have looked at it yet.
const (
	// MaxRepositoryFiles is the number of files, MaxRepositoryNames that of all names in
	// the folder.
	MaxRepositoryFiles = 32
	MaxRepositoryNames = 1000
	// MaxRepositoryBytes is the size of all files together.
	MaxRepositoryBytes = 256 << 10
)

// LoadRepository reads the *.yaml, *.yml and *.json files of RepositoryPolicies in the
// folder dir, in the order of their names. Sub folders and names that begin with a dot are
// left out. No link is followed: one on the way to a file is a mistake, as is whatever
// else is not a regular file. A folder without policies gives an empty Set.
func LoadRepository(ctx context.Context, dir string) (*Set, Findings) {
	sources, err := repositoryFiles(dir)
	if err != nil {
		name := filepath.Join(dir, RepositoryPolicies)
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			name = filepath.Join(dir, at.Path)
		}
		return &Set{}, Findings{fileError(name, "%s", plain(err))}
	}
	var pieces []*piece
	var found Findings
	for _, src := range sources {
		chunks := split(src.data)
		if len(chunks) == 0 {
			found = append(found, fileError(src.name, "holds no document"))
		}
		for _, c := range chunks {
			if !c.holdsCases(src.name) {
				pieces = append(pieces, &piece{source: src, chunk: c})
			}
		}
	}
	return read(ctx, pieces, found)
}

// repositoryFiles opens each folder by its name in the one above it, so that a name which
// changes meanwhile leads nowhere else. An error names its file as a path in dir.
func repositoryFiles(dir string) ([]source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	at := ""
	for name := range strings.SplitSeq(RepositoryPolicies, "/") {
		at = filepath.Join(at, name)
		next, err := openPlainFolder(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: at, Err: cause(err)}
		}
		_ = root.Close()
		root = next
	}
	names, err := policyNames(root)
	if err != nil {
		return nil, err
	}
	var all []source
	left := int64(MaxRepositoryBytes)
	for _, name := range names {
		path := filepath.Join(RepositoryPolicies, name)
		data, err := readPlainFile(root, name, left)
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: cause(err)}
		}
		left -= int64(len(data))
		all = append(all, source{name: filepath.Join(dir, path), dir: filepath.Join(dir, RepositoryPolicies), data: data})
	}
	return all, nil
}

// policyNames are the names of the manifests in a folder, sorted.
func policyNames(root *os.Root) ([]string, error) {
	fail := func(err error) error { return &fs.PathError{Op: "read", Path: RepositoryPolicies, Err: cause(err)} }
	f, err := root.Open(".")
	if err != nil {
		return nil, fail(err)
	}
	defer f.Close()
	entries, err := f.ReadDir(MaxRepositoryNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fail(err)
	}
	if len(entries) > MaxRepositoryNames {
		return nil, fail(fmt.Errorf("holds more than %d files", MaxRepositoryNames))
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && manifestName(e.Name()) && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if len(names) > MaxRepositoryFiles {
		return nil, fail(fmt.Errorf("holds %d files with policies, more than %d", len(names), MaxRepositoryFiles))
	}
	slices.Sort(names)
	return names, nil
}

// Errors with which the policies of a repository are refused.
var (
	errLink     = errors.New("is a link: the policies of a repository are read from its own files only")
	errNoFolder = errors.New("is not a folder")
	errReplaced = errors.New("was replaced while it was read")
)

// openPlainFolder opens a folder that is not a link.
func openPlainFolder(root *os.Root, name string) (*os.Root, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errLink
	case !info.IsDir():
		return nil, errNoFolder
	}
	next, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := next.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = errReplaced
	}
	if err != nil {
		_ = next.Close()
		return nil, err
	}
	return next, nil
}

// readPlainFile reads a regular file that is not a link, of at most the given size.
func readPlainFile(root *os.Root, name string, most int64) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, errLink
	}
	if err := regular(info); err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a FIFO
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = errReplaced
	}
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	n, err := io.Copy(&buf, io.LimitReader(f, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("the policies of the repository are larger than %d KiB together", MaxRepositoryBytes>>10)
	}
	return buf.Bytes(), err
}

// cause is an error without the operation and the path that package os adds.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
