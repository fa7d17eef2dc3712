package files

import (
	"context"
	"errors"
	"io/fs"
	"path"
)

// maxDepth bounds how deep a walk goes.
const maxDepth = 64

// walker visits what is beneath a folder in the order of the paths' bytes. It
// follows no symlinks and never enters a .git.
type walker struct {
	w *workspace
	// ignore leaves out what .gitignore files name.
	ignore bool
	// depth is how many levels are visited; 0 is all.
	depth int
	// all visits .git too, without entering it.
	all bool
	// visit may return fs.SkipDir, and fs.SkipAll to end the walk.
	visit func(in *folder, rel string, e entry) error
}

// walk visits everything beneath the folder rel.
func (k *walker) walk(ctx context.Context, rel string) error {
	var rules ignores
	if k.ignore {
		rules = k.w.inherited(rel)
	}
	in, err := k.w.openFolder(rel)
	if err != nil {
		return err
	}
	defer in.release()
	err = k.enter(ctx, in, rel, rules, 1)
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

// enter visits what is in the folder rel.
func (k *walker) enter(ctx context.Context, in *folder, rel string, rules ignores, level int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	all, err := in.entries()
	if err != nil {
		if level == 1 {
			return err
		}
		return nil // closed to us since it was opened
	}
	if k.ignore {
		rules = k.w.extend(rules, rel, all)
	}
	for _, e := range all {
		p := path.Join(rel, e.name)
		git := e.name == ".git"
		if git && !k.all || rules.match(p, e.mode.IsDir()) {
			continue
		}
		err := k.visit(in, p, e)
		if errors.Is(err, fs.SkipDir) {
			continue
		}
		if err != nil {
			return err
		}
		if !e.mode.IsDir() || git || level == maxDepth || level == k.depth {
			continue
		}
		if err := k.descend(ctx, in, e.name, p, rules, level+1); err != nil {
			return err
		}
	}
	return nil
}

// descend enters a folder in another one, unless it is gone or closed to us.
func (k *walker) descend(ctx context.Context, above *folder, name, rel string, rules ignores, level int) error {
	in, err := above.folder(name)
	if err != nil {
		return nil //nolint:nilerr // changed since the folder above was read
	}
	defer in.release()
	return k.enter(ctx, in, rel, rules, level)
}
