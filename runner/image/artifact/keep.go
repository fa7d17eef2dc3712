package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"agentctl.dev/agentctl/runner/statedir"
)

// Folders of an artifact in the store: what was fetched, and its files.
const (
	blobsDir = "blobs"
	filesDir = "files"
)

// keep writes an artifact, whole or not at all. One that another process has written
// meanwhile stays.
func keep(dir string, all blobs, t *tree) (err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".new-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	if err := os.Mkdir(filepath.Join(fresh, blobsDir), 0o700); err != nil {
		return err
	}
	for d, content := range all {
		if err := os.WriteFile(filepath.Join(fresh, blobsDir, d.Encoded()), content, 0o600); err != nil {
			return err
		}
	}
	if err := t.write(filepath.Join(fresh, filesDir)); err != nil {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// write writes the files into a new folder. The names were checked, and no link is in it.
func (t *tree) write(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for name := range t.dirs {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o700); err != nil {
			return err
		}
	}
	for name, f := range t.files {
		mode := fs.FileMode(0o600)
		if f.executable {
			mode = 0o700
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), f.content, mode); err != nil {
			return err
		}
	}
	return nil
}

// kept is what the store has fetched before.
type kept string

func (k kept) manifest(ctx context.Context, d digest.Digest) ([]byte, error) {
	return k.layer(ctx, d, maxManifest)
}

func (k kept) layer(_ context.Context, d digest.Digest, most int64) ([]byte, error) {
	return statedir.ReadFile(filepath.Join(string(k), blobsDir, d.Encoded()), most)
}

// check compares the files of a kept artifact with its digest.
func check(ctx context.Context, dir string, top digest.Digest) error {
	all, err := gather(ctx, kept(dir), top)
	if err != nil {
		return err
	}
	t, err := all.tree(top)
	if err != nil {
		return err
	}
	return t.compare(filepath.Join(dir, filesDir))
}

// compare returns how a folder differs from the tree.
func (t *tree) compare(dir string) error {
	found := 0
	err := filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, at)
		if err != nil || name == "." {
			return err
		}
		if name = filepath.ToSlash(name); e.IsDir() {
			if !t.dirs[name] {
				return fmt.Errorf("the folder %q was added", name)
			}
			return nil
		}
		want, ok := t.files[name]
		if !ok {
			return fmt.Errorf("the file %q was added", name)
		}
		found++
		info, err := e.Info()
		if err != nil {
			return err
		}
		content, err := statedir.ReadFile(at, int64(len(want.content)))
		if err != nil || !bytes.Equal(content, want.content) || info.Mode()&0o111 != 0 != want.executable {
			return fmt.Errorf("the file %q was changed", name)
		}
		return nil
	})
	if err == nil && found != len(t.files) {
		err = errors.New("files were removed")
	}
	return err
}
