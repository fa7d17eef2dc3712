package workspace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/api/v1alpha1"
)

// Errors with which a change is not applied. Nothing was touched.
var (
	// ErrApplied means that the folder has the change already.
	ErrApplied = errors.New("the change is already applied")
	// ErrInPlace: there is nothing to apply.
	ErrInPlace = errors.New("the run worked in place: its change is in the folder already")
	// ErrBusy means that another process applies a change to the folder.
	ErrBusy = errors.New("another change is being applied to this folder")
)

// ApplyRecord is the name of Application.Record in the folder of a run.
const ApplyRecord = "apply.json"

// Advice is how to go on after a change was not applied; again is the command that applies it.
func Advice(err error, again string) string {
	if interrupted, ok := errors.AsType[*InterruptedError](err); ok {
		return interrupted.Advice + " && " + again
	}
	if _, ok := errors.AsType[*DriftError](err); ok {
		return "restore these files, or move them away, then: " + again
	}
	return "remove the cause, then: " + again
}

// DriftError lists the files that have changed since the run began. Nothing was touched.
type DriftError struct{ Files []Drift }

// Drift is one such file.
type Drift struct {
	Path    Path
	Problem string
}

func (e *DriftError) Error() string {
	var b strings.Builder
	if len(e.Files) == 1 {
		b.WriteString("a file is not as the run found it; nothing was changed")
	} else {
		fmt.Fprintf(&b, "%d files are not as the run found them; nothing was changed", len(e.Files))
	}
	for i, d := range e.Files {
		if i == 20 {
			fmt.Fprintf(&b, "; and %d more", len(e.Files)-i)
			break
		}
		fmt.Fprintf(&b, "; %q %s", string(d.Path), d.Problem)
	}
	return b.String()
}

// Application is one change to be made to a folder.
type Application struct {
	// Source is the folder to change.
	Source string
	// Record is a file in the run's folder. While a change is being made it holds how to
	// undo it; the next Apply after a crash reads it.
	Record string
	Change *Change
	Blobs  Blobs
	// Once means that a change which Record knows to be made is not made again, whatever
	// has happened to the files since: Apply returns ErrApplied.
	Once bool

	// step is called before each step, for tests.
	step func(name string) error
}

// ReadChange reads a recorded change.
func ReadChange(blobs Blobs, id string) (*Change, error) {
	b, err := getLarge(blobs, id)
	if err != nil {
		return nil, fmt.Errorf("read change: %w", err)
	}
	var c Change
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("read change: %w", err)
	}
	return &c, nil
}

// Apply makes exactly the change, all of it or nothing.
//
//	folder                          error          the folder then
//	as the run found it             nil            has the change
//	has the change                  ErrApplied     is untouched
//	some file differs               *DriftError    is untouched
//	fails or changes meanwhile      other          is as before
//
// A file that is edited meanwhile is not lost: it is swapped out, compared and put back.
// Links are never followed, and nothing under a .git is written. An Apply that was killed
// is undone by the next one before it starts.
func Apply(ctx context.Context, a Application) error {
	if a.Change.Strategy == v1alpha1.StrategyInPlace {
		return ErrInPlace
	}
	if err := a.Change.check(); err != nil {
		return fmt.Errorf("apply to %s: %w", a.Source, err)
	}
	s, err := open(a)
	if err != nil {
		return fmt.Errorf("apply to %s: %w", a.Source, err)
	}
	defer s.close()
	if err := s.recover(); err != nil {
		return fmt.Errorf("undo the interrupted change of %s: %w", a.Source, err)
	}
	if a.Once && s.made {
		return fmt.Errorf("apply to %s: %w", a.Source, ErrApplied)
	}
	if err := s.plan(); err != nil {
		if s.partial && errors.Is(err, ErrApplied) {
			err = errors.Join(err, s.forget())
		}
		return fmt.Errorf("apply to %s: %w", a.Source, err)
	}
	if err := s.make(ctx); err != nil {
		return fmt.Errorf("apply to %s: %w", a.Source, err)
	}
	return nil
}

// Undo brings a folder back to how an Apply that was killed has found it, and removes what
// is left of one that had made its change. Without a record there is nothing to undo.
func Undo(source, record string) error {
	if _, err := os.Lstat(record); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s, err := open(Application{Source: source, Record: record})
	if err == nil {
		defer s.close()
		err = s.recover()
	}
	if err != nil {
		return fmt.Errorf("undo the interrupted change of %s: %w", source, err)
	}
	return nil
}

// open opens the folder of a change, which no other process changes until close.
func open(a Application) (*swapper, error) {
	r, err := openRoot(a.Source)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(r.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		r.close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrBusy
		}
		return nil, fmt.Errorf("lock: %w", err)
	}
	return newSwapper(r, a), nil
}

// close unlocks the folder. Closing the descriptor alone would not do: a program that is
// being started at this moment may hold a copy of it.
func (s *swapper) close() {
	s.closeStage()
	_ = unix.Flock(int(s.root.file.Fd()), unix.LOCK_UN)
	s.root.close()
}

// check refuses a change that no workspace of ours can have made.
func (c *Change) check() error {
	if why := c.incomplete(); why != "" {
		return errors.New(why)
	}
	seen := map[Path]bool{}
	for _, f := range c.Files {
		if err := checkPath(f.Path); err != nil {
			return err
		}
		switch {
		case seen[f.Path]:
			return fmt.Errorf("path %q: named twice", string(f.Path))
		case f.Old == nil && f.New == nil:
			return fmt.Errorf("path %q: no change", string(f.Path))
		case f.NotApplicable != "":
			return fmt.Errorf("path %q: its content was not recorded: %s", string(f.Path), f.NotApplicable)
		}
		seen[f.Path] = true
		for _, v := range []*Version{f.Old, f.New} {
			if v != nil && (v.Type != TypeFile && v.Type != TypeLink || v.Mode&^0o777 != 0) {
				return fmt.Errorf("path %q: type %q with mode %o", string(f.Path), v.Type, v.Mode)
			}
		}
	}
	for _, d := range slices.Concat(c.AddedDirs, c.RemovedDirs) {
		if err := checkPath(d.Path); err != nil {
			return err
		}
		if d.Mode&^0o777 != 0 {
			return fmt.Errorf("path %q: mode %o", string(d.Path), d.Mode)
		}
	}
	return nil
}

// plan holds the folder against the base and lists the operations.
func (s *swapper) plan() error {
	c := s.app.Change
	s.done = make([]bool, len(c.Files))
	var drift []Drift
	applied := len(c.Files) > 0
	for i := range c.Files {
		f := &c.Files[i]
		now, err := s.root.version(f.Path)
		if err != nil {
			return err
		}
		done := f.New.same(now)
		applied = applied && done
		if done && s.partial {
			s.done[i] = true
			continue
		}
		if !f.Old.same(now) {
			drift = append(drift, Drift{f.Path, driftProblem(f, now)})
		}
	}
	if applied && !s.partial {
		return ErrApplied
	}
	drift = append(drift, s.planFolders()...)
	switch {
	case len(drift) > 0:
		return &DriftError{drift}
	case applied && len(s.mkdirs)+len(s.rmdirs) == 0:
		return ErrApplied
	}
	s.planFiles()
	return nil
}

func driftProblem(f *FileChange, now *Version) string {
	switch {
	case now == nil:
		return "is missing"
	case f.New.same(now):
		return "has the run's change already"
	case f.Old == nil:
		return "exists"
	case f.Old.Type == now.Type && f.Old.Hash == now.Hash && f.Old.Target == now.Target:
		return fmt.Sprintf("has mode %04o, not %04o", now.Mode, f.Old.Mode)
	}
	return "was changed"
}

// planFolders lists which folders are created and removed, and finds those that new files
// need but that are missing.
func (s *swapper) planFolders() (drift []Drift) {
	c := s.app.Change
	gone, come, leaves := map[Path]bool{}, map[Path]bool{}, map[Path]bool{}
	for _, f := range c.Files {
		if f.Old != nil && f.New == nil {
			gone[f.Path] = true
		}
	}
	for _, d := range c.RemovedDirs {
		leaves[d.Path] = true
		if s.root.isDir(d.Path) {
			s.rmdirs = append(s.rmdirs, operation{Kind: opRmdir, Path: d.Path, Mode: d.Mode})
		}
	}
	slices.Reverse(s.rmdirs)
	for _, d := range c.AddedDirs {
		come[d.Path] = true
		now, err := s.root.version(d.Path)
		switch {
		case err != nil || (now != nil && !gone[d.Path]):
			drift = append(drift, Drift{d.Path, "is in the way of a new folder"})
		case !s.root.isDir(d.Path):
			s.mkdirs = append(s.mkdirs, operation{Kind: opMkdir, Path: d.Path, Mode: d.Mode})
		}
	}
	checked := map[Path]bool{}
	for i, f := range c.Files {
		if f.New == nil || s.done[i] {
			continue
		}
		if f.Old == nil && !leaves[f.Path] && s.root.isDir(f.Path) {
			drift = append(drift, Drift{f.Path, "is a folder"})
		}
		for dir := path.Dir(string(f.Path)); dir != "." && !checked[Path(dir)]; dir = path.Dir(dir) {
			checked[Path(dir)] = true
			if !come[Path(dir)] && !s.root.isDir(Path(dir)) {
				drift = append(drift, Drift{Path(dir), "is no longer a folder"})
			}
		}
	}
	return drift
}

// planFiles puts the operations in an order in which a file can become a
// folder and the other way round.
func (s *swapper) planFiles() {
	var removes, places []operation
	for i, f := range s.app.Change.Files {
		if s.done[i] {
			continue
		}
		op := operation{Path: f.Path, Index: i, Old: f.Old, New: f.New}
		switch {
		case f.New == nil:
			op.Kind = opRemove
			removes = append(removes, op)
			continue
		case f.Old == nil:
			op.Kind = opAdd
		default:
			op.Kind = opReplace
		}
		places = append(places, op)
	}
	s.record.Operations = slices.Concat(removes, s.rmdirs, s.mkdirs, places)
}

// version returns what is at p, without following links: nil for nothing, a folder, and a
// path through something that is not a folder. A folder in place of a file is noticed when
// the file is read.
func (r *root) version(p Path) (*Version, error) {
	at, name, err := r.parent(p)
	if err != nil {
		if absent(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("look at %q: %w", string(p), err)
	}
	defer at.close()
	return versionAt(int(at), name)
}

func versionAt(at int, name string) (*Version, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if absent(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("look at %q: %w", name, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		target, err := readLink(at, name)
		return &Version{Type: TypeLink, Target: Path(target)}, err
	case unix.S_IFDIR:
		return nil, nil
	case unix.S_IFREG:
		fd, st, err := openFile(at, name)
		if err != nil {
			return nil, fmt.Errorf("look at %q: %w", name, err)
		}
		defer fd.close()
		hash, size, err := fd.hash()
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", name, err)
		}
		return &Version{Type: TypeFile, Mode: uint32(st.Mode) & 0o777, Size: size, Hash: hash}, nil
	}
	return &Version{Type: "other"}, nil
}

// absent is what a path that leads to nothing answers, also one through a link
// or a file.
func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

func (r *root) isDir(p Path) bool {
	d, err := r.dir(p)
	if err != nil {
		return false
	}
	d.close()
	return true
}

func newStageName() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("name the stage: %w", err)
	}
	return stagePrefix + hex.EncodeToString(b[:]), nil
}
