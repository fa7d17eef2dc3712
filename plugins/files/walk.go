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
	visit func(rel string, e entry) error
}

// walk visits everything beneath the folder rel.
func (k *walker) walk(ctx context.Context, rel string) error {
	var rules ignores
	if k.ignore {
		rules = k.w.inherited(rel)
	}
	err := k.enter(ctx, rel, rules, 1)
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

func (k *walker) enter(ctx context.Context, rel string, rules ignores, level int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	all, err := k.w.folder(rel)
	if err != nil {
		if level == 1 {
			return err
		}
		return nil // gone or closed to us since its parent was read
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
		err := k.visit(p, e)
		if errors.Is(err, fs.SkipDir) {
			continue
		}
		if err != nil {
			return err
		}
		if !e.mode.IsDir() || git || level == maxDepth || level == k.depth {
			continue
		}
		if err := k.enter(ctx, p, rules, level+1); err != nil {
			return err
		}
	}
	return nil
}
