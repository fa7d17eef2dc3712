package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// phase is how far an apply has come.
type phase string

const (
	// phaseStaging: the source has a stage, and nothing else has changed.
	phaseStaging phase = "staging"
	// phaseSwapping: any operation may have been done.
	phaseSwapping phase = "swapping"
	// phasePartial: some operations were done and cannot be undone, because the
	// stage with the old contents is gone; the next apply does the rest.
	phasePartial phase = "partial"
	// phaseApplied: all were; the stage may still be there.
	phaseApplied phase = "applied"
)

// applyRecord is what a later apply needs to undo one that was killed.
type applyRecord struct {
	Source     string      `json:"source"`
	Stage      string      `json:"stage"`
	Phase      phase       `json:"phase"`
	Operations []operation `json:"operations"`
	// Partial is set if this apply continued after one that could not be undone.
	Partial bool `json:"partial,omitempty"`
}

// InterruptedError reports that an apply that was interrupted cannot be undone as
// it is. Advice is what to do before the next apply.
type InterruptedError struct {
	Err    error
	Advice string
}

func (e *InterruptedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InterruptedError) Unwrap() error { return e.Err }

// MergePrefix begins the names of the records of merges in the folder of a run.
const MergePrefix = "merge-"

// Settle undoes what a process of a run was changing in files of a person when it was
// killed, by the records in the run's folder. A copy that is in that folder stays as it is.
func Settle(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.Name() != ApplyRecord && !strings.HasPrefix(e.Name(), MergePrefix) {
			continue
		}
		record := filepath.Join(dir, e.Name())
		source, err := sourceOf(record)
		own := strings.HasPrefix(source, strings.TrimSuffix(dir, "/")+"/")
		if _, gone := os.Stat(source); err == nil && source != "" && !own && gone == nil {
			err = Undo(source, record)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// left are the stages that interrupted merges have left in the files.
func (w *Workspace) left() (stages []string) {
	if w.spec.Records == "" {
		return nil
	}
	entries, _ := os.ReadDir(w.spec.Records) // without it nothing is known to be left
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), MergePrefix) {
			continue
		}
		if r, err := readRecord(filepath.Join(w.spec.Records, e.Name())); err == nil && r.Source == w.dir {
			stages = append(stages, r.Stage)
		}
	}
	return stages
}

// sourceOf is the folder that a record is about; "" where nothing is to be undone.
func sourceOf(record string) (string, error) {
	r, err := readRecord(record)
	if err != nil || !filepath.IsAbs(r.Source) {
		return "", err
	}
	return r.Source, nil
}

// readRecord reads a record. A damaged one is empty: it undoes nothing.
func readRecord(record string) (r applyRecord, err error) {
	info, err := os.Lstat(record)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRecord {
		return r, err
	}
	b, err := os.ReadFile(record)
	if err != nil || json.Unmarshal(b, &r) != nil {
		return applyRecord{}, err
	}
	return r, nil
}

// isStageName takes what newStageName makes and nothing else: a record must not
// lead to any other folder.
func isStageName(s string) bool {
	id, ok := strings.CutPrefix(s, stagePrefix)
	return ok && len(id) == 16 && strings.Trim(id, "0123456789abcdef") == ""
}

// maxRecord bounds the record of an interrupted apply.
const maxRecord = 256 << 20

// write makes the record durable before what it speaks of happens.
func (s *swapper) write(p phase) error {
	if err := s.step("record " + string(p)); err != nil {
		return err
	}
	s.record.Phase, s.record.Partial = p, s.partial
	b, err := json.Marshal(&s.record)
	if err != nil {
		return fmt.Errorf("record the apply: %w", err)
	}
	folder := filepath.Dir(s.app.Record)
	f, err := os.CreateTemp(folder, ".apply-*")
	if err != nil {
		return fmt.Errorf("record the apply: %w", err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.app.Record)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("record the apply: %w", err), os.Remove(f.Name()))
	}
	return syncFolder(folder)
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// end closes the record of an apply that changed nothing: there is nothing to undo. The
// operations of an earlier one stay recorded.
func (s *swapper) end() error {
	if s.partial {
		return s.write(phasePartial)
	}
	return s.forget()
}

// forget removes the record.
func (s *swapper) forget() error {
	if err := os.Remove(s.app.Record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of the apply: %w", err)
	}
	return nil
}

// recover brings the source back to how an interrupted apply found it. Where that
// is not possible because the old contents are gone, this apply is partial: it
// takes what is done already as done.
func (s *swapper) recover() error {
	info, err := os.Lstat(s.app.Record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	damaged := func(err error) error {
		return &InterruptedError{err, fmt.Sprintf("an apply was interrupted and its record is damaged: a folder %s* in %s, if there is one, holds old contents; restore from it what you need, then: rm -rf %s %s",
			stagePrefix, s.app.Source, s.app.Record, filepath.Join(s.app.Source, stagePrefix+"*"))}
	}
	if !info.Mode().IsRegular() || info.Size() > maxRecord {
		return damaged(fmt.Errorf("%s is not a record of an apply", s.app.Record))
	}
	b, err := os.ReadFile(s.app.Record)
	if err != nil {
		return err
	}
	old := newSwapper(s.root, s.app)
	defer old.closeStage()
	if err := json.Unmarshal(b, &old.record); err != nil {
		return damaged(fmt.Errorf("read %s: %w", s.app.Record, err))
	}
	r := &old.record
	switch {
	case !isStageName(r.Stage):
		return damaged(fmt.Errorf("%s is not a record of an apply", s.app.Record))
	case r.Phase != phaseApplied && r.Source != s.app.Source:
		return fmt.Errorf("the interrupted apply was to %s: apply there first", r.Source)
	}
	for i := range r.Operations {
		if err := checkPath(r.Operations[i].Path); err != nil {
			return damaged(err)
		}
	}
	old.partial, s.made = r.Partial, r.Phase == phaseApplied && r.Source == s.app.Source
	s.partial, err = old.finish()
	return err
}

// finish undoes an interrupted apply, and reports whether it could not because its
// stage is gone.
func (s *swapper) finish() (partial bool, err error) {
	switch s.record.Phase {
	case phaseStaging:
		return s.partial, s.discard()
	case phasePartial:
		return true, nil
	case phaseSwapping:
		if err := s.openStage(); absent(err) {
			return true, nil
		} else if err != nil {
			return false, err
		}
		return s.partial, s.rollBack()
	case phaseApplied:
		if s.record.Source != s.app.Source {
			return false, nil
		}
		if err := s.openStage(); absent(err) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		return false, s.clearStage()
	}
	return false, fmt.Errorf("the phase %q is unknown", s.record.Phase)
}

// rollBack undoes all operations, the last first, and clears the stage. A file that was
// edited since stays as it is; then the old content stays in the stage, and the record
// stays too.
func (s *swapper) rollBack() error {
	var errs []error
	for i := len(s.record.Operations) - 1; i >= 0; i-- {
		op := &s.record.Operations[i]
		if err := s.step("undo " + string(op.Path)); err != nil {
			return err
		}
		if err := s.undo(op); err != nil {
			errs = append(errs, fmt.Errorf("undo %s %q: %w", op.Kind, string(op.Path), err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		stage := filepath.Join(s.app.Source, s.record.Stage)
		return &InterruptedError{
			fmt.Errorf("%w; everything else is as before, the old contents are in %s", err, stage),
			fmt.Sprintf("keep what you need of these files and of %[1]s, then: rm -r %[1]s", shellWord(stage)),
		}
	}
	if err := s.syncFolders(); err != nil {
		return err
	}
	return errors.Join(s.clearStage(), s.end())
}

// errEdited stops the undoing of a file that was edited.
var errEdited = errors.New("it was changed meanwhile")

func (s *swapper) undo(op *operation) error {
	at, name, err := s.root.parent(op.Path)
	if absent(err) {
		return s.undoAbsent(op)
	}
	if err != nil {
		return err
	}
	defer at.close()
	switch op.Kind {
	case opMkdir:
		err = unix.Unlinkat(int(at), name, unix.AT_REMOVEDIR)
		if absent(err) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
			err = nil
		}
	case opRmdir:
		if err = unix.Mkdirat(int(at), name, 0o700); err == nil {
			err = unix.Fchmodat(int(at), name, op.Mode, 0)
		} else if errors.Is(err, unix.EEXIST) {
			err = nil
		}
	case opRemove:
		err = s.bringBack(op, int(at), name)
	case opAdd:
		err = s.takeBack(op, int(at), name)
	case opReplace:
		err = s.undoReplace(op, int(at), name)
	}
	if errors.Is(err, errEdited) {
		if now, look := versionAt(int(at), name); look == nil && op.Old.same(now) {
			return nil // somebody has restored it
		}
	}
	return err
}

// undoAbsent is for an operation whose folder is not there: it was not done,
// unless something of it lies in the stage.
func (s *swapper) undoAbsent(op *operation) error {
	if op.Kind == opMkdir || op.Kind == opRmdir {
		return nil // they put nothing into the stage
	}
	if _, ok := s.inode(int(s.stage), op.oldName()); ok {
		return errEdited
	}
	if ino, ok := s.inode(int(s.stage), op.newName()); ok && ino != op.Inode {
		return errEdited
	}
	return nil
}

// bringBack returns the old content from the stage to its place.
func (s *swapper) bringBack(op *operation, at int, name string) error {
	if _, ok := s.inode(int(s.stage), op.oldName()); !ok {
		return nil
	}
	if err := moveNew(int(s.stage), op.oldName(), at, name); errors.Is(err, unix.EEXIST) {
		return errEdited
	} else if err != nil {
		return err
	}
	return nil
}

// takeBack moves new content from its place to the stage.
func (s *swapper) takeBack(op *operation, at int, name string) error {
	if _, ok := s.inode(int(s.stage), op.newName()); ok {
		return nil
	}
	switch ours, err := s.isOurs(op, at, name); {
	case err != nil:
		return err
	case !ours:
		if _, there := s.inode(at, name); !there {
			return nil
		}
		return errEdited
	}
	return moveNew(at, name, int(s.stage), op.newName())
}

func (s *swapper) undoReplace(op *operation, at int, name string) error {
	if _, ok := s.inode(int(s.stage), op.oldName()); ok { // without an exchange
		if err := s.takeBack(op, at, name); err != nil {
			return err
		}
		return s.bringBack(op, at, name)
	}
	ino, ok := s.inode(int(s.stage), op.newName())
	if !ok || ino == op.Inode {
		return nil
	}
	ours, err := s.isOurs(op, at, name)
	if err != nil {
		return err
	}
	if !ours {
		if _, there := s.inode(at, name); there {
			return errEdited
		}
		return moveNew(int(s.stage), op.newName(), at, name)
	}
	_, err = exchange(int(s.stage), op.newName(), at, name)
	return err
}

// isOurs reports whether the file there is the one that this apply put there, unchanged.
func (s *swapper) isOurs(op *operation, at int, name string) (bool, error) {
	if ino, ok := s.inode(at, name); !ok || ino != op.Inode {
		return false, nil
	}
	now, err := versionAt(at, name)
	return op.New.same(now), err
}

// shellWord quotes a path for a shell where that is needed.
func shellWord(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func (s *swapper) inode(at int, name string) (uint64, bool) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, false
	}
	return st.Ino, true
}
