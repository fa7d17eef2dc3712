// Package workspace gives a run its files and records exactly what it changed.
package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/fstree"
	"agentctl.dev/agentctl/runner/workspace/watch"
)

// Limits of every workspace, whatever its spec is.
const (
	// MaxFiles bounds the files that a workspace begins with.
	MaxFiles = 1_000_000
	// MaxListed bounds the files of which changes are listed.
	MaxListed = 4_000_000
	// DefaultSizeLimit bounds the bytes of a workspace that declares no limit.
	DefaultSizeLimit = 2 << 30
	// DefaultGrowthLimit bounds what a run adds to a workspace that declares no limit.
	DefaultGrowthLimit = 10 << 30
)

// Errors with which a workspace cannot be prepared.
var (
	// ErrUnsupported is a strategy that this version does not have.
	ErrUnsupported = errors.New("not supported by this version")
	// ErrSource is a source that is not a folder, or one that cannot be meant.
	ErrSource = errors.New("not usable as the source of a workspace")
	// ErrTooLarge is a source over its limit of bytes or files.
	ErrTooLarge = errors.New("workspace too large")
)

// Blobs keeps contents by their hash, sha256:<hex>.
type Blobs interface {
	PutBlob(b []byte) (id string, err error)
	GetBlob(id string) ([]byte, error)
}

// Spec selects the files that a run works on.
type Spec struct {
	// Strategy is Copy, InPlace or Empty. Default Copy.
	Strategy v1alpha1.WorkspaceStrategy
	// Source is the absolute path of the folder; unused by Empty.
	Source string
	// From is the folder that a Copy is made of, if it is not Source: the files of another
	// run, which may be in the state folder.
	From string
	// Dir is the folder to make for Copy and Empty. It must not exist.
	Dir string
	// Cloned says that Dir holds the files of a Copy already, and that Source is Dir: there
	// is no other folder.
	Cloned bool
	// Exclude lists globs of paths that are not part of the workspace. One
	// without a slash matches names at any depth.
	Exclude []string
	// SizeLimit in bytes. Default DefaultSizeLimit.
	SizeLimit int64
	// GrowthLimit of the disk that the files take, in bytes. Default DefaultGrowthLimit.
	// The caller enforces it, by Growth.
	GrowthLimit int64
	// Skip lists absolute paths that are never part of a workspace, such as the
	// state folder.
	Skip []string
	// Records is the folder with the records of changes that were made to the files, as of
	// Application. What an interrupted one has left in the files is not a change of the run.
	// Optional.
	Records string
	// Home is the folder that is refused as a source. Default the user's.
	Home string
	// MaxFiles and MaxListed bound the files, as the constants, which are their
	// defaults.
	MaxFiles, MaxListed int
	// Blobs receives the contents of changed files. Required for Changes.
	Blobs Blobs
	// Kept are the bytes of contents that earlier processes of the run have kept for its
	// states: the limit is that of the run.
	Kept int64
}

// Workspace is the files of one run. Its methods are for one goroutine.
type Workspace struct {
	spec   Spec
	dir    string
	filter *filter
	pack   *pack

	cancel context.CancelFunc
	done   chan struct{}
	// What the goroutine of Prepare leaves behind when done is closed.
	base *Snapshot
	err  error
	// began is what the files took on the disk then.
	began fstree.Usage

	mu    sync.Mutex
	notes notes
	last  *Snapshot
	// watch says what was touched since last; nil if all files have to be looked at. linked
	// says that some have several names: what is done through another one is not reported.
	// unwatchable says that not all folders can be watched.
	watch       *watch.Watch
	linked      bool
	unwatchable bool

	// recorded is the newest state that Step has recorded, nil before the first; kept are
	// the bytes of the contents that the run keeps.
	recorded *Snapshot
	kept     int64
}

// Prepare makes the workspace and returns at once: a copy is filled, or a tree
// in place looked at, in the background until Ready returns. Cancelling ctx
// stops that; Close waits for it.
func Prepare(ctx context.Context, spec Spec) (*Workspace, error) {
	w, err := newWorkspace(spec, Usable, makeDir)
	if err != nil {
		return nil, err
	}
	if err := w.prepare(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// prepare fills a new workspace in the background.
func (w *Workspace) prepare(ctx context.Context) error {
	var err error
	if w.pack, err = newPack(w.spec.packPath()); err != nil {
		return err
	}
	return w.start(ctx, w.fill)
}

// newWorkspace checks the spec; from checks the source of a copy, and need is
// what is done about the folder of a strategy that has one of its own.
func newWorkspace(spec Spec, from func(Spec) error, need func(dir string) error) (*Workspace, error) {
	if spec.Strategy == "" {
		spec.Strategy = v1alpha1.StrategyCopy
	}
	if spec.SizeLimit <= 0 {
		spec.SizeLimit = DefaultSizeLimit
	}
	if spec.GrowthLimit <= 0 {
		spec.GrowthLimit = DefaultGrowthLimit
	}
	spec.MaxFiles, spec.MaxListed = cmp.Or(spec.MaxFiles, MaxFiles), cmp.Or(spec.MaxListed, MaxListed)
	w := &Workspace{spec: spec, dir: spec.Dir, kept: spec.Kept, done: make(chan struct{})}
	var err error
	switch spec.Strategy {
	case v1alpha1.StrategyCopy:
		if spec.Cloned {
			err = mustBeThere(spec.Dir)
			break
		}
		err = errors.Join(from(spec), need(spec.Dir))
	case v1alpha1.StrategyInPlace:
		w.dir, err = spec.Source, Usable(spec)
	case v1alpha1.StrategyEmpty:
		err = need(spec.Dir)
	default:
		err = fmt.Errorf("workspace strategy %q: %w", spec.Strategy, ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// packPath is where the texts of the base are kept: beside the folder of the run.
func (s *Spec) packPath() string {
	if s.Dir == "" {
		return ""
	}
	return s.Dir + ".base"
}

// start does the work that Ready waits for.
func (w *Workspace) start(ctx context.Context, work func(context.Context) error) error {
	spec := &w.spec
	var err error
	if w.filter, err = newFilter(spec.Exclude, append(spec.Skip[:len(spec.Skip):len(spec.Skip)], spec.Dir, spec.packPath())); err != nil {
		return errors.Join(err, w.pack.close())
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go func() {
		defer close(w.done)
		if w.err = work(ctx); w.err == nil {
			w.began, w.err = fstree.Measure(ctx, w.dir, MaxListed)
		}
	}()
	return nil
}

// Usable refuses what would copy a machine instead of a project, before anything
// is made: the source of a Copy or of an InPlace.
func Usable(spec Spec) error {
	if spec.From != "" { // the run whose files they are has checked them
		return mustBeThere(spec.From)
	}
	if !filepath.IsAbs(spec.Source) {
		return fmt.Errorf("workspace source %q: not an absolute path: %w", spec.Source, ErrSource)
	}
	info, err := os.Stat(spec.Source)
	if err != nil {
		return fmt.Errorf("workspace source: %w: %w", err, ErrSource)
	}
	if !info.IsDir() {
		return fmt.Errorf("workspace source %q: not a folder: %w", spec.Source, ErrSource)
	}
	home := spec.Home
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	for path, what := range map[string]string{"/": "the whole file system", home: "the home folder"} {
		if other, err := os.Stat(path); path != "" && err == nil && os.SameFile(info, other) {
			return fmt.Errorf("workspace source %q is %s: %w", spec.Source, what, ErrSource)
		}
	}
	for _, path := range append(spec.Skip[:len(spec.Skip):len(spec.Skip)], spec.Dir) {
		if other, err := os.Stat(path); path != "" && err == nil && os.SameFile(info, other) {
			return fmt.Errorf("workspace source %q is the state folder: %w", spec.Source, ErrSource)
		}
	}
	return apart(spec)
}

// apart refuses a source that lies in a folder which is never part of a workspace:
// as files of a run, its journals and keys would be in every tool's sight.
func apart(spec Spec) error {
	dir, err := filepath.EvalSymlinks(spec.Source)
	if err != nil {
		return fmt.Errorf("workspace source: %w: %w", err, ErrSource)
	}
	for up := filepath.Dir(dir); up != "/"; up = filepath.Dir(up) {
		info, err := os.Stat(up)
		if err != nil {
			continue // a user who may not read that folder has no folder there to hide
		}
		for _, path := range spec.Skip {
			if other, err := os.Stat(path); path != "" && err == nil && os.SameFile(info, other) {
				return fmt.Errorf("workspace source %q lies in the state folder: %w", spec.Source, ErrSource)
			}
		}
	}
	return nil
}

func makeDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("workspace folder %q: not an absolute path", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("make workspace folder: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !isEmptyDir(dir) {
		return fmt.Errorf("make workspace folder: %w", err)
	}
	return nil
}

func isEmptyDir(dir string) bool {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return false
	}
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}

// MakeDir makes the folder of a workspace that has one of its own, ahead of
// Prepare: a program can be held in it before there are any files.
func MakeDir(spec Spec) error {
	if spec.Strategy == v1alpha1.StrategyInPlace || spec.Cloned {
		return nil
	}
	return makeDir(spec.Dir)
}

// fill makes the copy, or looks at the tree in place, and keeps its texts.
func (w *Workspace) fill(ctx context.Context) error {
	t := tree{ctx: ctx, filter: w.filter, notes: w, sizeLimit: w.spec.SizeLimit, maxFiles: w.spec.MaxFiles, pack: w.pack, root: w.dir}
	copies := w.spec.Strategy == v1alpha1.StrategyCopy && !w.spec.Cloned
	if copies {
		t.root, t.target = w.spec.origin(), w.dir
	}
	base, err := t.walk(nil)
	if err == nil {
		err = w.pack.seal()
	}
	if err == nil {
		w.base, w.last = base, base
		w.beginWatch(ctx)
		return nil
	}
	if copies {
		// Half a copy is of no use.
		err = errors.Join(err, fstree.Remove(w.dir))
	}
	return fmt.Errorf("prepare workspace from %s: %w", w.spec.origin(), err)
}

// origin is the folder whose files the run begins with.
func (s *Spec) origin() string { return cmp.Or(s.From, s.Source) }

// Dir returns the folder the tools see. Its content is complete when Ready has returned.
func (w *Workspace) Dir() string { return w.dir }

// Ready waits until the workspace is complete.
func (w *Workspace) Ready(ctx context.Context) error {
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return fmt.Errorf("wait for the workspace: %w", context.Cause(ctx))
	}
}

// GrowthLimit is the bound of Growth.
func (w *Workspace) GrowthLimit() int64 { return w.spec.GrowthLimit }

// Growth returns by how many bytes the files take more of the disk than when the
// workspace was prepared or taken up. Any goroutine may call it.
func (w *Workspace) Growth(ctx context.Context) (int64, error) {
	if err := w.Ready(ctx); err != nil {
		return 0, err
	}
	now, err := fstree.Measure(ctx, w.dir, MaxListed)
	return now.Bytes - w.began.Bytes, err
}

// Base returns the snapshot before the run; nil until Ready has returned nil.
func (w *Workspace) Base() *Snapshot {
	select {
	case <-w.done:
		return w.base
	default:
		return nil
	}
}

// Notes returns what a person should know: files that were left out, and why.
func (w *Workspace) Notes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.notes.list()
}

func (w *Workspace) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes.add(fmt.Sprintf(format, args...))
}

// Close stops a preparation in progress and releases everything but the files. Changes
// cannot be called afterwards, and the run cannot continue.
func (w *Workspace) Close() error {
	return errors.Join(w.Leave(), w.pack.remove())
}

// Leave is Close for a run that has not ended: Open continues it.
func (w *Workspace) Leave() error {
	w.cancel()
	<-w.done
	w.unwatch()
	return w.pack.close()
}

// maxNotes bounds what a hostile tree can make us say.
const maxNotes = 100

// notes is a list without repetitions that ends.
type notes struct {
	lines []string
	seen  map[string]bool
	more  int
}

func (n *notes) add(line string) {
	switch {
	case n.seen[line]:
	case len(n.lines) == maxNotes:
		n.more++
	default:
		if n.seen == nil {
			n.seen = map[string]bool{}
		}
		n.seen[line] = true
		n.lines = append(n.lines, line)
	}
}

func (n *notes) list() []string {
	out := append([]string(nil), n.lines...)
	if n.more > 0 {
		out = append(out, fmt.Sprintf("and %d more like these", n.more))
	}
	return out
}
