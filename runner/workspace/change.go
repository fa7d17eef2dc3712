package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Limits of what is recorded of a change. Files beyond them are listed by name,
// size and mode, and keep the change from being applied.
const (
	// maxApply bounds a file whose content is recorded.
	maxApply = 64 << 20
	// maxContents and maxContentBytes bound all of them together.
	maxContents     = 100_000
	maxContentBytes = 4 << 30
	// maxEvent bounds the names in the event of a change, in bytes.
	maxEvent = 4 << 20
)

// Kinds of changes, as events and results spell them.
const (
	Added    = "added"
	Modified = "modified"
	Deleted  = "deleted"
)

// Change is everything a run did to its files: enough to show it, and to do
// exactly the same to the source.
type Change struct {
	// Strategy of the workspace: what was done in place needs no applying.
	Strategy v1alpha1.WorkspaceStrategy `json:"strategy"`
	// Files in order of their paths.
	Files []FileChange `json:"files"`
	// AddedDirs and RemovedDirs are the folders only the one side has.
	AddedDirs   []Entry `json:"addedDirs,omitempty"`
	RemovedDirs []Entry `json:"removedDirs,omitempty"`
	Summary     Summary `json:"summary"`
	// Unlisted are folders that could be read before the run and cannot be now:
	// what they hold is not part of the change.
	Unlisted []Path `json:"unlisted,omitempty"`
	// Diff is the change as text; it is recorded as a blob of its own.
	Diff []byte `json:"-"`
}

// FileChange is one changed file or link.
type FileChange struct {
	Path   Path   `json:"path"`
	Change string `json:"change"`
	// Old is what was there before, New what is there now; nil where nothing.
	Old *Version `json:"old,omitempty"`
	New *Version `json:"new,omitempty"`
	// NotApplicable is why the new content was not recorded; "" if it was.
	NotApplicable string `json:"notApplicable,omitempty"`
}

// Version is a file or link at one time.
type Version struct {
	Type   Type   `json:"type"`
	Mode   uint32 `json:"mode,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Hash   string `json:"hash,omitempty"`
	Target Path   `json:"target,omitempty"`
	// Blob holds the content of a new file.
	Blob string `json:"blob,omitempty"`
}

// same leaves out where the content is kept.
func (v *Version) same(o *Version) bool {
	if v == nil || o == nil {
		return v == o
	}
	return v.Type == o.Type && v.Mode == o.Mode && v.Hash == o.Hash && v.Target == o.Target
}

// Summary counts a change.
type Summary struct {
	Added        int `json:"added"`
	Modified     int `json:"modified"`
	Deleted      int `json:"deleted"`
	LinesAdded   int `json:"linesAdded"`
	LinesRemoved int `json:"linesRemoved"`
}

// Empty reports whether nothing was changed.
func (c *Change) Empty() bool {
	return len(c.Files)+len(c.AddedDirs)+len(c.RemovedDirs)+len(c.Unlisted) == 0
}

// contents is how much more content of changed files is recorded.
type contents struct {
	files int
	bytes int64
}

// take reserves room for a file, or returns why there is none.
func (c *contents) take(size int64) (why string) {
	switch {
	case c.files == 0:
		return fmt.Sprintf("the contents of at most %d changed files are recorded", maxContents)
	case c.bytes < size:
		return fmt.Sprintf("at most %d bytes of changed files are recorded", int64(maxContentBytes))
	}
	c.files--
	c.bytes -= size
	return ""
}

// incomplete returns why the change is not all that the run did; "" if it is.
func (c *Change) incomplete() string {
	if len(c.Unlisted) == 0 {
		return ""
	}
	text := fmt.Sprintf("the folder %q cannot be read: what it holds now is not known", brief(string(c.Unlisted[0])))
	if more := len(c.Unlisted) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more folders", more)
	}
	return text
}

// Named are the changed files as events and results name them.
func (c *Change) Named() []event.FileChange {
	files := make([]event.FileChange, len(c.Files))
	for i, f := range c.Files {
		files[i] = event.FileChange{Path: strings.ToValidUTF8(string(f.Path), "\uFFFD"), Change: f.Change}
	}
	return files
}

// Record stores the change and its diff and returns the event that refers to them.
func (c *Change) Record(blobs Blobs) (event.WorkspacePatch, error) {
	p := event.WorkspacePatch{Files: []event.FileChange{}, Error: c.incomplete()}
	size := 0
	for i, f := range c.Named() {
		if size += len(f.Path) + len(f.Change) + 30; size > maxEvent {
			p.Omitted = len(c.Files) - i
			break
		}
		p.Files = append(p.Files, f)
	}
	if c.Empty() {
		return p, nil
	}
	s := c.Summary
	p.Summary = &event.DiffSummary{Files: len(c.Files), Added: s.Added, Modified: s.Modified, Deleted: s.Deleted, LinesAdded: s.LinesAdded, LinesRemoved: s.LinesRemoved}
	b, err := json.Marshal(c)
	if err != nil {
		return p, fmt.Errorf("record change: %w", err)
	}
	var errs [2]error
	p.Change, errs[0] = putLarge(blobs, b)
	p.Diff, errs[1] = blobs.PutBlob(c.Diff)
	if err := errors.Join(errs[:]...); err != nil {
		return p, fmt.Errorf("record change: %w", err)
	}
	return p, nil
}

// Changes compares the workspace with its base. It reads only files that were
// touched since the last time.
func (w *Workspace) Changes(ctx context.Context) (*Change, error) {
	if err := w.Ready(ctx); err != nil {
		return nil, err
	}
	// What the run itself has written does not count towards the limit of the copy.
	now, err := w.tree(ctx, w).walk(w.last)
	if err != nil {
		return nil, fmt.Errorf("compare workspace %s: %w", w.dir, err)
	}
	c, err := w.compare(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("compare workspace %s: %w", w.dir, err)
	}
	w.last = now
	return c, nil
}

func (w *Workspace) compare(ctx context.Context, now *Snapshot) (*Change, error) {
	c := &Change{Strategy: w.spec.Strategy, Files: []FileChange{}}
	before, after := w.base.index(), now.index()
	for p, old := range before {
		neu := after[p]
		switch {
		case neu == nil && now.hides(p):
		case neu == nil || neu.Type != old.Type || !old.version().same(neu.version()):
			c.add(p, old, neu)
		}
	}
	for p, neu := range after {
		if before[p] == nil {
			c.add(p, nil, neu)
		}
	}
	c.sort()
	root, err := openRoot(w.dir)
	if err != nil {
		return nil, err
	}
	defer root.close()
	old, release := w.oldTexts()
	defer release()
	d := differ{old: old}
	for _, dir := range now.Hidden {
		if !w.base.hides(dir) {
			c.Unlisted = append(c.Unlisted, dir)
		}
	}
	d.unlisted(c.Unlisted)
	room := contents{files: maxContents, bytes: maxContentBytes}
	for i := range c.Files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, err := w.record(root, &c.Files[i], &room)
		if err != nil {
			return nil, err
		}
		d.file(&c.Files[i], text)
	}
	c.Diff = d.text()
	c.Summary = c.count(d)
	return c, nil
}

// oldTexts finds the texts of the base: in the pack, else in the source of a
// copy, if it still is what was copied.
func (w *Workspace) oldTexts() (find func(Path, *Version) ([]byte, bool), release func()) {
	contents, release := w.oldContents(maxText)
	return func(p Path, v *Version) ([]byte, bool) {
		b, ok := contents(p, v)
		return b, ok && isText(b)
	}, release
}

// oldContents finds the contents of the base of files up to a size.
func (w *Workspace) oldContents(limit int64) (find func(Path, *Version) ([]byte, bool), release func()) {
	var source *root
	find = func(p Path, v *Version) ([]byte, bool) {
		if b, ok := w.pack.get(v.Hash); ok {
			return b, true
		}
		if w.spec.Blobs != nil && v.Size <= limit { // that of an earlier step
			if b, err := w.spec.Blobs.GetBlob(v.Hash); err == nil {
				return b, true
			}
		}
		if w.spec.Strategy != v1alpha1.StrategyCopy || v.Size > limit {
			return nil, false
		}
		if source == nil {
			var err error
			if source, err = openRoot(w.spec.origin()); err != nil {
				return nil, false
			}
		}
		b, err := source.read(p, limit)
		return b, err == nil && hashOf(b) == v.Hash
	}
	return find, func() {
		if source != nil {
			source.close()
		}
	}
}

// version is the entry as a version; nil for a folder, which is never a change by itself.
func (e *Entry) version() *Version {
	if e == nil || e.Type == TypeDir {
		return nil
	}
	return &Version{Type: e.Type, Mode: e.Mode, Size: e.Size, Hash: e.Hash, Target: e.Target}
}

func (c *Change) add(p Path, old, neu *Entry) {
	f := FileChange{Path: p, Change: Modified, Old: old.version(), New: neu.version()}
	if old != nil && old.Type == TypeDir {
		c.RemovedDirs = append(c.RemovedDirs, Entry{Path: p, Type: TypeDir, Mode: old.Mode})
	}
	if neu != nil && neu.Type == TypeDir {
		c.AddedDirs = append(c.AddedDirs, Entry{Path: p, Type: TypeDir, Mode: neu.Mode})
	}
	switch {
	case f.Old == nil && f.New == nil:
		return
	case f.Old == nil:
		f.Change = Added
	case f.New == nil:
		f.Change = Deleted
	}
	c.Files = append(c.Files, f)
}

func (c *Change) sort() {
	slices.SortFunc(c.AddedDirs, byPath)
	slices.SortFunc(c.RemovedDirs, byPath)
	slices.SortFunc(c.Files, func(a, b FileChange) int { return strings.Compare(string(a.Path), string(b.Path)) })
}

func (c *Change) count(d differ) Summary {
	s := Summary{LinesAdded: d.added, LinesRemoved: d.removed}
	for _, f := range c.Files {
		switch f.Change {
		case Added:
			s.Added++
		case Modified:
			s.Modified++
		case Deleted:
			s.Deleted++
		}
	}
	return s
}

// record stores the new content of a file and returns it. A file that changes
// at this very moment is recorded as it is now.
func (w *Workspace) record(root *root, f *FileChange, room *contents) ([]byte, error) {
	if f.New == nil || f.New.Type != TypeFile {
		return nil, nil
	}
	if f.New.Size > maxApply {
		f.NotApplicable = fmt.Sprintf("larger than %d bytes", maxApply)
		return nil, nil
	}
	if f.NotApplicable = room.take(f.New.Size); f.NotApplicable != "" {
		return nil, nil
	}
	b, err := root.read(f.Path, maxApply)
	if err != nil {
		f.NotApplicable = "it could not be read: " + err.Error()
		return nil, nil //nolint:nilerr // the change is marked, and is refused by Apply
	}
	f.New.Size, f.New.Hash = int64(len(b)), hashOf(b)
	if w.spec.Blobs == nil {
		return b, errors.New("no place for the contents")
	}
	if f.New.Blob, err = w.spec.Blobs.PutBlob(b); err != nil {
		return nil, fmt.Errorf("record %q: %w", f.Path, err)
	}
	return b, nil
}

// root is a folder in which paths are opened step by step, never through a link.
type root struct{ file *os.File }

func openRoot(dir string) (*root, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &root{f}, nil
}

func (r *root) close() { _ = r.file.Close() }

func (r *root) read(p Path, limit int64) ([]byte, error) {
	at, name, err := r.parent(p)
	if err != nil {
		return nil, err
	}
	defer at.close()
	fd, st, err := openFile(int(at), name)
	if err != nil {
		return nil, err
	}
	defer fd.close()
	if st.Size > limit {
		return nil, fmt.Errorf("larger than %d bytes", limit)
	}
	b := make([]byte, st.Size+1)
	n, err := fd.readFull(b)
	if err == nil && n == len(b) {
		err = io.ErrShortBuffer // it grows while it is read
	}
	return b[:n], err
}
