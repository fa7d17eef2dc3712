package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/runner/fstree"
)

// ErrGone is a workspace that cannot be taken up again because its folder is
// not there.
var ErrGone = errors.New("the folder of the interrupted run is gone")

// Open continues the workspace of a run that was interrupted, as its programs have left
// it: Changes then returns the whole change against base, the snapshot that was recorded
// before the first of them ran (ReadSnapshot). The spec is that of Prepare.
//
// Without a base no program has seen the files. A copy may be half made then, and is
// discarded and made again. A copy with a base is complete, and is used even if its source
// no longer exists.
//
// Like Prepare it returns at once and works on until Ready returns. Every file is read
// once: the times that prove a file unchanged were known only to the process that was
// killed.
func Open(ctx context.Context, spec Spec, base *Snapshot) (*Workspace, error) {
	need, from := mustBeThere, anySource
	if base == nil {
		need, from = func(dir string) error { return errors.Join(fstree.Remove(dir), makeDir(dir)) }, Usable
	}
	w, err := newWorkspace(spec, from, need)
	if err != nil {
		return nil, err
	}
	if base == nil {
		err = w.prepare(ctx)
	} else {
		err = w.reopen(ctx, base)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (w *Workspace) reopen(ctx context.Context, base *Snapshot) error {
	var err error
	if w.pack, err = openPack(w.spec.packPath()); err != nil {
		w.note("%v; a diff may lack the lines of files that have changed", err)
	}
	return w.start(ctx, func(ctx context.Context) error { return w.relist(ctx, base) })
}

// anySource takes every source: nothing more is copied from it.
func anySource(Spec) error { return nil }

func mustBeThere(dir string) error {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("workspace %s: %w", dir, ErrGone)
	}
	return nil
}

// relist lists the files as they are now.
func (w *Workspace) relist(ctx context.Context, base *Snapshot) error {
	// What was left out was said when the workspace was prepared.
	w.base = base
	now, err := w.tree(ctx, silence{}).walk(nil)
	if err != nil {
		return fmt.Errorf("take up workspace %s: %w", w.dir, err)
	}
	if err := w.sweep(base, now); err != nil {
		return fmt.Errorf("take up workspace %s: %w", w.dir, err)
	}
	w.last = now
	w.beginWatch(ctx)
	return nil
}

type silence struct{}

func (silence) note(string, ...any) {}

// sweep removes the temporary files of shipped tools that were killed while they wrote.
func (w *Workspace) sweep(base, now *Snapshot) error {
	var r *root
	before := base.index()
	for _, e := range now.Entries {
		if e.Type != TypeFile || !isUnfinished(path.Base(string(e.Path))) || before[e.Path] != nil {
			continue
		}
		if r == nil {
			var err error
			if r, err = openRoot(w.dir); err != nil {
				return err
			}
			defer r.close()
		}
		at, name, err := r.parent(e.Path)
		if err != nil {
			continue // it went away by itself
		}
		err = unix.Unlinkat(int(at), name, 0)
		at.close()
		if err != nil && !absent(err) {
			return fmt.Errorf("remove %q: %w", string(e.Path), err)
		}
	}
	return nil
}

// isUnfinished takes the names that plugins/files gives to new contents until
// they take their place: 26 letters and digits of base 32.
func isUnfinished(name string) bool {
	id, ok := strings.CutPrefix(name, ".agentctl-")
	if id, ok2 := strings.CutSuffix(id, ".tmp"); ok && ok2 {
		return len(id) == 26 && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
	}
	return false
}
