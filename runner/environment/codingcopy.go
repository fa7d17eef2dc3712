package environment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/workspace"
)

// copy copies the files that the program may see.
func (c *coding) copy(ctx context.Context, root string) (*workspace.Workspace, error) {
	own := filepath.Join(root, filepath.FromSlash(c.task.Path))
	others, err := beside(root, c.task.Path)
	if err != nil {
		return nil, err
	}
	for _, p := range c.task.Paths {
		if err := unlinked(own, p); err != nil {
			return nil, err
		}
	}
	masked, err := c.masked(ctx, root)
	if err != nil {
		return nil, err
	}
	used, err := fstree.Measure(ctx, own, workspace.MaxListed)
	if err != nil {
		return nil, err
	}
	if err := tool.Fits(c.t.env.o.Dir, used.Bytes); err != nil {
		return nil, err
	}
	if err := errors.Join(fstree.Remove(c.dir), os.RemoveAll(c.dir+".base")); err != nil { // of a process that was killed
		return nil, err
	}
	s := c.t.env.o.Workspace
	files, err := workspace.Prepare(ctx, workspace.Spec{
		Strategy: v1alpha1.StrategyCopy, Source: root, From: root, Dir: c.dir, Exclude: others, Skip: masked,
		SizeLimit: s.SizeLimit, GrowthLimit: s.GrowthLimit, MaxFiles: s.MaxFiles, MaxListed: s.MaxListed, Blobs: c.t.env.o.Journal,
	})
	if err != nil {
		return nil, err
	}
	if err := files.Ready(ctx); err != nil {
		return nil, errors.Join(err, files.Close(), fstree.Remove(c.dir))
	}
	return files, nil
}

// beside are patterns of what lies beside a folder, and beside those above it: what a copy of
// the folder leaves out. Links on the way are refused.
func beside(root, folder string) (others []string, err error) {
	if err := unlinked(root, folder); err != nil || folder == "." {
		return nil, err
	}
	at := ""
	for part := range strings.SplitSeq(folder, "/") {
		entries, err := os.ReadDir(filepath.Join(root, at))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Name() != part {
				others = append(others, "/"+quoteGlob(at+e.Name()))
			}
		}
		at += part + "/"
	}
	info, err := os.Stat(filepath.Join(root, folder))
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("path %q: not a folder", folder)
	}
	return others, err
}

// unlinked refuses a path below a folder that does not exist, or that a link is part of.
func unlinked(root, path string) error {
	if path == "." {
		return nil
	}
	at := root
	for part := range strings.SplitSeq(path, "/") {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("path %q: there is no such file or folder", path)
		case err != nil:
			return fmt.Errorf("path %q: %w", path, err)
		case info.Mode()&os.ModeSymlink != 0:
			return fmt.Errorf("path %q: a part of it is a link", path)
		}
	}
	return nil
}

// quoteGlob is a pattern of exactly one path.
func quoteGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`).Replace(path)
}

// masked are the files that the call must not read, as absolute paths.
func (c *coding) masked(ctx context.Context, root string) (all []string, err error) {
	if g := c.t.guard; g != nil {
		if _, all, err = g.wait(ctx); err != nil {
			return nil, err
		}
		all = slices.Clone(all)
	}
	var names []string
	for _, e := range c.t.env.files.Base().Entries {
		if e.Type != workspace.TypeDir {
			names = append(names, string(e.Path))
		}
	}
	hidden, err := c.t.judge.Unreadable(ctx, c.call, names)
	for _, name := range hidden {
		all = append(all, filepath.Join(root, name))
	}
	return all, err
}
