package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// stagePrefix begins the name of the one folder that an apply makes in the
// source: new contents wait in it, old ones stay in it until all is done.
const stagePrefix = ".agentctl-apply-"

// opKind is what an operation does.
type opKind string

const (
	opRemove  opKind = "remove"
	opRmdir   opKind = "rmdir"
	opMkdir   opKind = "mkdir"
	opAdd     opKind = "add"
	opReplace opKind = "replace"
)

// operation is one step of an apply. Whether it was done, and so has to be
// undone, is read from the disk: a log of progress could lie after a crash.
type operation struct {
	Kind  opKind   `json:"kind"`
	Path  Path     `json:"path"`
	Index int      `json:"index"`
	Mode  uint32   `json:"mode,omitempty"`
	Old   *Version `json:"old,omitempty"`
	New   *Version `json:"new,omitempty"`
	// Inode of the staged content identifies it.
	Inode uint64 `json:"inode,omitempty"`
}

// The names of an operation's contents in the stage.
func (o *operation) newName() string { return "new-" + strconv.Itoa(o.Index) }
func (o *operation) oldName() string { return "old-" + strconv.Itoa(o.Index) }

// swapper makes one change, and undoes it.
type swapper struct {
	root   *root
	app    Application
	record applyRecord
	stage  descriptor
	// partial: an earlier apply was interrupted and cannot be undone.
	partial bool
	// made: an earlier apply has made the change.
	made bool
	// done are the files of the change that a partial apply finds changed.
	done []bool

	rmdirs, mkdirs []operation
}

func newSwapper(r *root, a Application) *swapper { return &swapper{root: r, app: a, stage: -1} }

func (s *swapper) closeStage() {
	if s.stage >= 0 {
		s.stage.close()
	}
	s.stage = -1
}

func (s *swapper) step(name string) error {
	if s.app.step == nil {
		return nil
	}
	return s.app.step(name)
}

// make stages the new contents, swaps them in, and undoes all if one step fails.
func (s *swapper) make(ctx context.Context) error {
	var err error
	if s.record.Stage, err = newStageName(); err != nil {
		return err
	}
	s.record.Source = s.app.Source
	if err := s.write(phaseStaging); err != nil {
		return err
	}
	if err := s.stageAll(ctx); err != nil {
		return errors.Join(err, s.discard())
	}
	err = s.write(phaseSwapping)
	for i := 0; err == nil && i < len(s.record.Operations); i++ {
		if err = ctx.Err(); err == nil {
			err = s.do(&s.record.Operations[i])
		}
	}
	if err == nil {
		err = s.syncFolders()
	}
	if err != nil {
		return errors.Join(err, s.rollBack())
	}
	if err := s.write(phaseApplied); err != nil {
		// The record must be in that phase before the undoing: a crash in the middle must
		// not look like the end of an apply.
		if again := s.write(phaseSwapping); again != nil {
			return errors.Join(err, again)
		}
		return errors.Join(err, s.rollBack())
	}
	return s.clearStage()
}

// stageAll writes every new content to its final bytes, mode and durability.
func (s *swapper) stageAll(ctx context.Context) error {
	if err := s.step("make stage"); err != nil {
		return err
	}
	at := int(s.root.file.Fd())
	if err := unix.Mkdirat(at, s.record.Stage, 0o700); err != nil {
		return fmt.Errorf("make stage: %w", err)
	}
	if err := s.openStage(); err != nil {
		return err
	}
	for i := range s.record.Operations {
		op := &s.record.Operations[i]
		if op.New == nil {
			continue
		}
		if err := errors.Join(ctx.Err(), s.step("stage "+string(op.Path))); err != nil {
			return err
		}
		if err := s.stageOne(op); err != nil {
			return fmt.Errorf("stage %q: %w", string(op.Path), err)
		}
	}
	return fsync(int(s.stage))
}

func (s *swapper) openStage() (err error) {
	s.stage, err = s.root.dir(Path(s.record.Stage))
	if err != nil {
		return fmt.Errorf("open stage: %w", err)
	}
	return nil
}

func (s *swapper) stageOne(op *operation) error {
	at, name := int(s.stage), op.newName()
	if op.New.Type == TypeLink {
		if err := unix.Symlinkat(string(op.New.Target), at, name); err != nil {
			return err
		}
	} else if err := s.stageFile(op.New, name); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	op.Inode = st.Ino
	return nil
}

func (s *swapper) stageFile(v *Version, name string) error {
	b, err := s.app.Blobs.GetBlob(v.Blob)
	if err != nil {
		return err
	}
	if hashOf(b) != v.Hash {
		return errors.New("the recorded content has another hash")
	}
	fd, err := unix.Openat(int(s.stage), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	d := descriptor(fd)
	defer d.close()
	return errors.Join(d.writeAll(b), unix.Fchmod(fd, v.Mode), fsync(fd))
}

// do makes one operation. After a swap it compares what was swapped out: if that is not
// the base, the file was edited meanwhile, and all is undone.
func (s *swapper) do(op *operation) error {
	if err := s.step(string(op.Kind) + " " + string(op.Path)); err != nil {
		return err
	}
	at, name, err := s.root.parent(op.Path)
	if err != nil {
		return s.wrap(op, err)
	}
	defer at.close()
	switch op.Kind {
	case opMkdir:
		if err = unix.Mkdirat(int(at), name, 0o700); err == nil {
			// The owner may always write, or the files could not follow.
			err = unix.Fchmodat(int(at), name, op.Mode|0o700, 0)
		}
	case opRmdir:
		err = unix.Unlinkat(int(at), name, unix.AT_REMOVEDIR)
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOENT) {
			err = nil // it holds what the run never saw
		}
	case opAdd:
		err = moveNew(int(s.stage), op.newName(), int(at), name)
	case opRemove:
		if err = moveNew(int(at), name, int(s.stage), op.oldName()); err == nil {
			err = s.mustBeOld(op, op.oldName())
		}
	case opReplace:
		err = s.replace(op, int(at), name)
	default:
		err = fmt.Errorf("operation %q is unknown", op.Kind)
	}
	return s.wrap(op, err)
}

func (s *swapper) wrap(op *operation, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", op.Kind, string(op.Path), err)
}

func (s *swapper) replace(op *operation, at int, name string) error {
	ok, err := exchange(int(s.stage), op.newName(), at, name)
	if err != nil {
		return err
	}
	if ok {
		return s.mustBeOld(op, op.newName())
	}
	if err := moveNew(at, name, int(s.stage), op.oldName()); err != nil {
		return err
	}
	if err := s.mustBeOld(op, op.oldName()); err != nil {
		return err
	}
	if err := s.step("between " + string(op.Path)); err != nil {
		return err
	}
	return moveNew(int(s.stage), op.newName(), at, name)
}

func (s *swapper) mustBeOld(op *operation, staged string) error {
	now, err := versionAt(int(s.stage), staged)
	if err != nil {
		return err
	}
	if !op.Old.same(now) {
		return &DriftError{[]Drift{{op.Path, "was changed at this moment"}}}
	}
	return nil
}

// syncFolders makes the renames durable.
func (s *swapper) syncFolders() error {
	var folders []Path
	for i := range s.record.Operations {
		dir := path.Dir(string(s.record.Operations[i].Path))
		if dir == "." {
			dir = ""
		}
		folders = append(folders, Path(dir))
	}
	slices.Sort(folders)
	for _, dir := range slices.Compact(folders) {
		d, err := s.root.dir(dir)
		if absent(err) {
			continue // it was removed; its parent is in the list
		}
		if err == nil {
			err = fsync(int(d))
			d.close()
		}
		if err != nil {
			return fmt.Errorf("sync folder %q: %w", string(dir), err)
		}
	}
	return nil
}

// clearStage removes the stage and the old contents in it.
func (s *swapper) clearStage() error {
	if err := s.step("clear stage"); err != nil {
		return err
	}
	defer s.closeStage()
	for i := range s.record.Operations {
		op := &s.record.Operations[i]
		for _, name := range []string{op.newName(), op.oldName()} {
			if err := unix.Unlinkat(int(s.stage), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("clear stage: %w", err)
			}
		}
	}
	// Files of others in the stage stay, and the stage with them.
	if err := unix.Unlinkat(int(s.root.file.Fd()), s.record.Stage, unix.AT_REMOVEDIR); err != nil && !absent(err) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("clear stage: %w", err)
	}
	return fsync(int(s.root.file.Fd()))
}

// discard ends an apply of which nothing has reached the source.
func (s *swapper) discard() error {
	if s.stage < 0 {
		if err := s.openStage(); absent(err) {
			return s.end()
		} else if err != nil {
			return err
		}
	}
	return errors.Join(s.clearStage(), s.end())
}

func fsync(fd int) error { return os.NewSyscallError("fsync", unix.Fsync(fd)) }

// linkNew is moveNew for file systems without a rename that never replaces.
func linkNew(fromDir int, from string, toDir int, to string) error {
	if err := unix.Linkat(fromDir, from, toDir, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(fromDir, from, 0)
}
