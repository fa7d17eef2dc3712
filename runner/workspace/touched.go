package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"agentctl.dev/agentctl/runner/workspace/watch"
)

// minWatched is how many entries a tree has that is watched: to look at each file of a
// smaller one takes a few milliseconds.
const minWatched = 2_000

// look returns the files as they are now. It reads only those that were touched since the
// last time, and of a large tree it looks only at the folders in which something was.
func (w *Workspace) look(ctx context.Context) (*Snapshot, error) {
	now, err := w.lookAtTouched(ctx)
	if now == nil && err == nil {
		now, err = w.lookAtAll(ctx)
	}
	if err != nil {
		w.unwatch() // what was touched is known no more
		return nil, err
	}
	w.last = now
	return now, nil
}

// lookAtTouched looks at the folders in which something was touched since the last time; nil
// if that is not known.
func (w *Workspace) lookAtTouched(ctx context.Context) (*Snapshot, error) {
	if w.watch == nil {
		return nil, nil
	}
	touched, err := w.watch.Touched()
	if err != nil {
		return nil, nil //nolint:nilerr // all folders are looked at, and watched anew
	}
	t := w.tree(ctx, silence{})
	t.watch = w.watch
	now, err := t.again(w.last, &touched)
	if errors.Is(err, watch.ErrLost) {
		return nil, nil
	}
	return now, err
}

// lookAtAll looks at each file, and begins to watch a large tree.
func (w *Workspace) lookAtAll(ctx context.Context) (*Snapshot, error) {
	w.unwatch()
	var begun *watch.Watch
	if len(w.last.Entries) >= minWatched && !w.linked && !w.unwatchable {
		begun = newWatch(w.dir)
	}
	return w.lookWatching(ctx, begun)
}

// lookWatching looks at each file, and watches the folders with a new watch; nil watches none.
func (w *Workspace) lookWatching(ctx context.Context, begun *watch.Watch) (*Snapshot, error) {
	t := w.tree(ctx, silence{})
	t.watch = begun
	now, err := t.walk(w.last)
	w.linked = t.linked.Load()
	if begun != nil && begun.Err() != nil {
		w.unwatchable = true
	}
	if err != nil || w.linked || w.unwatchable || len(now.Hidden) > 0 {
		closeWatch(begun)
		return now, err
	}
	w.watch = begun
	return now, nil
}

// beginWatch looks at a large tree once more, so that the first step need not look at all
// of it. If that fails, the first step does so.
func (w *Workspace) beginWatch(ctx context.Context) {
	if len(w.last.Entries) < minWatched {
		return
	}
	begun := newWatch(w.dir)
	if begun == nil {
		w.unwatchable = true
		return
	}
	if now, err := w.lookWatching(ctx, begun); err == nil {
		w.last = now
	}
}

// tree is a walk over the files as the run has left them.
func (w *Workspace) tree(ctx context.Context, notes noter) *tree {
	return &tree{ctx: ctx, filter: w.filter, notes: notes, sizeLimit: 1 << 62, maxFiles: w.spec.MaxListed, root: w.dir, base: w.base, left: w.left()}
}

func (w *Workspace) unwatch() {
	closeWatch(w.watch)
	w.watch = nil
}

// newWatch returns nil where changes are not reported.
func newWatch(dir string) *watch.Watch {
	root, err := openAny(dir)
	if err != nil {
		return nil
	}
	defer root.close()
	w, err := watch.New(int(root))
	if err != nil {
		return nil
	}
	return w
}

func closeWatch(w *watch.Watch) {
	if w != nil {
		w.Close()
	}
}

// again returns the snapshot of a tree in which, since it was known, only some folders were
// touched. It returns watch.ErrLost if that is not enough to know it.
func (t *tree) again(known *Snapshot, touched *watch.Touched) (*Snapshot, error) {
	t.known, t.same, t.touched = known, make([]bool, len(known.Entries)), touched
	for i := range known.Entries {
		e := &known.Entries[i]
		t.same[i] = true
		if e.sig.racy {
			touched.Folders[strings.TrimPrefix(path.Dir("/"+string(e.Path)), "/")] = true
		}
	}
	s, err := t.run(t.listTouched)
	switch {
	case err != nil:
		return nil, err
	case t.linked.Load(), len(s.Hidden) > 0: // also to begin with the next look
		return nil, fmt.Errorf("a file with several names, or a folder that cannot be listed: %w", watch.ErrLost)
	}
	return s, t.limits(s)
}

// limits fails if the whole tree is over a limit.
func (t *tree) limits(s *Snapshot) error {
	var names int64
	for i := range s.Entries {
		names += int64(len(s.Entries[i].Path))
	}
	t.files.Store(0)
	t.names.Store(0)
	t.countNames(int64(len(s.Entries)), names)
	return t.cause()
}

// listTouched lists the touched folders, those above before those in them.
func (t *tree) listTouched() error {
	r, err := openRoot(t.root)
	if err != nil {
		return err
	}
	defer r.close()
	for _, at := range slices.Sorted(maps.Keys(t.touched.Folders)) {
		if t.isNew(at) {
			continue // all of it is walked
		}
		src, err := r.dir(Path(at))
		switch {
		case vanished(err):
			continue // the folder above was touched as well
		case err != nil:
			return fmt.Errorf("list %q: %w: %w", at, err, watch.ErrLost)
		}
		d := &folder{path: at, src: src, dst: none}
		d.users.Add(1)
		t.setSame(Path(at), false)
		err = t.list(d)
		d.release()
		if err != nil {
			return err
		}
	}
	return nil
}

// isNew reports whether a folder, or one above it, is new.
func (t *tree) isNew(at string) bool {
	for ; at != "." && at != ""; at = path.Dir(at) {
		if t.touched.New[at] {
			return true
		}
	}
	return false
}

// stays reports whether a folder that was found is one of which only what was touched has
// to be listed: it was known, and is watched.
func (t *tree) stays(p Path, f *found) bool {
	if t.touched == nil || t.touched.New[string(p)] {
		return false
	}
	old := t.at(f.place)
	if old == nil || old.Type != TypeDir {
		return false
	}
	t.setSame(p, true)
	t.keepKnown(f.place, Entry{Path: p, Type: TypeDir, Mode: uint32(f.stat.Mode) & 0o777})
	return true
}

// setSame says of all that is known below a folder whether it is as it was.
func (t *tree) setSame(dir Path, same bool) {
	from, to := 0, len(t.same)
	if dir != "" {
		from, to = t.known.from(dir+"/"), t.known.from(dir+"0") // the character after the slash
	}
	for i := from; i < to; i++ {
		t.same[i] = same
	}
}
