package policytest

import (
	"os"
	"path/filepath"
	"strconv"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// folders are the workspaces of cases: an empty one for all of them, and one for each case
// that has links. They share one parent, so the surroundings of a workspace are empty.
type folders struct {
	top   string
	empty string
	count int
}

func newFolders() (*folders, error) {
	top, err := os.MkdirTemp("", "agentctl-policy-")
	if err != nil {
		return nil, err
	}
	f := &folders{top: top}
	if f.top, err = filepath.EvalSymlinks(top); err == nil {
		f.empty, err = f.make()
	}
	if err != nil {
		_ = os.RemoveAll(top) // the first error is reported
		return nil, err
	}
	return f, nil
}

func (f *folders) make() (string, error) {
	f.count++
	dir := filepath.Join(f.top, strconv.Itoa(f.count), "workspace")
	return dir, os.MkdirAll(dir, 0o700)
}

func (f *folders) remove() { _ = os.RemoveAll(f.top) } // empty folders in the temporary folder are harmless

// with returns a workspace that holds links.
func (f *folders) with(links []v1alpha1.TestLink) (string, error) {
	if len(links) == 0 {
		return f.empty, nil
	}
	dir, err := f.make()
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	for _, l := range links {
		if parent := filepath.Dir(l.Path); parent != "." {
			if err := root.MkdirAll(parent, 0o700); err != nil {
				return "", err
			}
		}
		if err := root.Symlink(l.To, l.Path); err != nil {
			return "", err
		}
	}
	return dir, nil
}
