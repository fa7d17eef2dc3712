package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"agentctl.dev/agentctl/runner/statedir"
)

const (
	// maxFiles and maxRead bound what one build reads.
	maxFiles = 2000
	maxRead  = 4 * MaxFile
)

// kustomizeFS is the file system as one build sees it: it can only be read, only regular
// files, and each kustomization is checked before the library gets it.
type kustomizeFS struct {
	ctx context.Context //nolint:containedctx // the interface of the library has no context
	// kustomizations are the files that names of kustomizations lead to.
	kustomizations map[string]bool
	// read are the files that were read, without links.
	read []string
	size int64
	// refused is the first reason for which a file was kept from the library. The
	// library skips a kustomization that it cannot read, so the error is kept here.
	refused *Finding
}

var errReadOnly = errors.New("a build writes no files")

// ReadFile returns a regular file, and a kustomization only if it is admitted.
func (f *kustomizeFS) ReadFile(name string) ([]byte, error) {
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	if f.refused != nil {
		return nil, errors.New(f.refused.Message)
	}
	text, err := statedir.ReadFile(name, MaxFile)
	if err != nil {
		return nil, err
	}
	f.size += int64(len(text))
	if f.read = append(f.read, name); len(f.read) > maxFiles || f.size > maxRead {
		return nil, f.refuse(fileError(name, "the kustomization reads more than %d files or %d MiB", maxFiles, maxRead>>20))
	}
	if expands(text) {
		return nil, f.refuse(fileError(name, "its aliases stand for more than %d values", maxExpanded))
	}
	if isKustomization(name) || f.kustomizations[name] {
		if found := check(name, text); found != nil {
			return nil, f.refuse(*found)
		}
	}
	return text, nil
}

func (f *kustomizeFS) refuse(found Finding) error {
	if f.refused == nil {
		f.refused = &found
	}
	return errors.New(found.Message)
}

// CleanedAbs returns the folder and the file that a path leads to, without links. A
// link whose name is that of a kustomization leads to one.
func (f *kustomizeFS) CleanedAbs(path string) (filesys.ConfirmedDir, string, error) {
	if err := f.ctx.Err(); err != nil {
		return "", "", err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", "", fmt.Errorf("resolve %s: %w", path, err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", "", err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", "", err
	}
	if info.IsDir() {
		return filesys.ConfirmedDir(abs), "", nil
	}
	if isKustomization(path) {
		f.kustomizations[abs] = true
	}
	return filesys.ConfirmedDir(filepath.Dir(abs)), filepath.Base(abs), nil
}

// Exists reports whether there is something at a path.
func (*kustomizeFS) Exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// IsDir reports whether a path leads to a folder.
func (*kustomizeFS) IsDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// ReadDir returns the names in a folder.
func (*kustomizeFS) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Glob returns the files that a pattern matches.
func (*kustomizeFS) Glob(pattern string) ([]string, error) { return filepath.Glob(pattern) }

// Walk visits a folder and what is in it.
func (*kustomizeFS) Walk(path string, visit filepath.WalkFunc) error {
	return filepath.Walk(path, visit)
}

// Open is not used by a build.
func (*kustomizeFS) Open(name string) (filesys.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// Create fails.
func (*kustomizeFS) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir fails.
func (*kustomizeFS) Mkdir(string) error { return errReadOnly }

// MkdirAll fails.
func (*kustomizeFS) MkdirAll(string) error { return errReadOnly }

// RemoveAll fails.
func (*kustomizeFS) RemoveAll(string) error { return errReadOnly }

// WriteFile fails.
func (*kustomizeFS) WriteFile(string, []byte) error { return errReadOnly }
