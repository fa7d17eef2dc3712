package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"agentctl.dev/agentctl/plugins/sdk"
)

// batch changes several files so that all of them change or none. New contents are
// written beside the files first, then put in their places by renames; a step that fails
// takes back those before it. A process that is killed in between leaves a part of the
// steps done, and files whose names begin with .agentctl-.
type batch struct {
	w       *workspace
	between func(step int) error
	targets []*target
	steps   []*step
	folders []string // that were made, outermost first
}

// step puts a content in the place of a file, or removes the file.
type step struct {
	t       *target
	content []byte
	removes bool
	// temp has the new content until it is put in place, backup the old file until all
	// steps are done.
	temp, backup string
	done         bool
}

func (b *batch) put(t *target, content []byte) {
	if t.info == nil || string(content) != string(t.old) {
		b.steps = append(b.steps, &step{t: t, content: content})
	}
}

func (b *batch) remove(t *target) { b.steps = append(b.steps, &step{t: t, removes: true}) }

// hold keeps a target until the batch ends. It refuses one that is behind a symlink, and
// one that the batch has already, before it waits for its lock.
func (b *batch) hold(ctx context.Context, s *set, t *target, create bool) (*target, error) {
	t, err := s.hold(ctx, t, create, func() error {
		if inside, _ := beneath(b.w.real, t.real); inside != t.at {
			return sdk.Errorf("%s leads through a symlink to %s: name that file, a patch follows no links", t.rel, inside)
		}
		if slices.ContainsFunc(b.targets, func(o *target) bool { return o.real == t.real }) {
			return sdk.Errorf("the patch names %s twice: write one section with all that happens to it", t.rel)
		}
		return nil
	})
	if err == nil {
		b.targets = append(b.targets, t)
	}
	return t, err
}

func (b *batch) close() {
	for _, t := range b.targets {
		t.close()
	}
}

// makeFolders makes the folders that are missing. A link among them is refused.
func (b *batch) makeFolders(dir string) error {
	if dir == "." {
		return nil
	}
	at := ""
	for part := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, part)
		info, err := b.w.root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := b.w.root.Mkdir(at, 0o777); err != nil {
				return b.w.fail("make the folder", at, err)
			}
			b.folders = append(b.folders, at)
		case err != nil:
			return b.w.fail("open", at, err)
		case info.Mode()&fs.ModeSymlink != 0:
			return sdk.Errorf("%s is a symlink: a patch follows no links", at)
		case !info.IsDir():
			return sdk.Errorf("%s is a file, not a folder", at)
		}
	}
	return nil
}

// commit does all steps: contents first, then removals, so that a moved file is there
// at any time.
func (b *batch) commit() error {
	slices.SortStableFunc(b.steps, func(x, y *step) int {
		if x.removes == y.removes {
			return 0
		}
		if y.removes {
			return -1
		}
		return 1
	})
	for _, s := range b.steps {
		if err := s.stage(); err != nil {
			return s.t.w.fail("write", s.t.at, err)
		}
	}
	for i, s := range b.steps {
		err := error(nil)
		if b.between != nil {
			err = b.between(i)
		}
		if err == nil {
			err = s.do()
		}
		if err != nil {
			return s.t.w.fail("change", s.t.at, err)
		}
		s.done = true
	}
	for _, s := range b.steps {
		if s.backup != "" {
			_ = s.t.dir.Remove(s.backup) // it is left beside the file at worst
		}
	}
	return nil
}

// abandon takes back what was done, and returns the error for the model.
func (b *batch) abandon(cause error) error {
	var left []string
	for _, s := range slices.Backward(b.steps) {
		if err := s.undo(); err != nil {
			left = append(left, fmt.Sprintf("%s (%v)", s.t.rel, err))
		}
	}
	for _, dir := range slices.Backward(b.folders) {
		_ = b.w.root.Remove(dir) // one that is not empty by now is somebody else's
	}
	if len(left) > 0 {
		return sdk.Errorf("%w; the patch could not be taken back in %s: look at these files", cause, strings.Join(left, ", "))
	}
	if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return sdk.Errorf("%w; nothing was changed", cause)
}

func tempName() string { return ".agentctl-" + rand.Text() + ".tmp" }

// stage writes the new content beside the file.
func (s *step) stage() error {
	if s.removes {
		return nil
	}
	s.temp = tempName()
	return s.t.fill(s.temp, s.content)
}

// do changes the file, if it is still the one that was read.
func (s *step) do() error {
	if err := s.t.unchanged(); err != nil {
		return err
	}
	dir, name := s.t.dir, s.t.name
	switch {
	case s.removes:
		s.backup = tempName()
		return dir.Rename(name, s.backup)
	case s.t.info == nil:
		// A link, unlike a rename, never replaces a file that appeared meanwhile.
		err := dir.Link(s.temp, name)
		if err == nil {
			_ = dir.Remove(s.temp) // it is left beside the file at worst
		} else if !errors.Is(err, fs.ErrExist) {
			err = dir.Rename(s.temp, name) // a file system without links
		}
		return err
	}
	backup := tempName()
	if err := dir.Link(name, backup); err != nil {
		if err := s.t.fill(backup, s.t.old); err != nil {
			_ = dir.Remove(backup)
			return err
		}
	}
	s.backup = backup
	return dir.Rename(s.temp, name)
}

// undo puts the old file back.
func (s *step) undo() error {
	dir, name := s.t.dir, s.t.name
	defer func() {
		if s.temp != "" {
			_ = dir.Remove(s.temp) // it has been renamed, or is of no use
		}
	}()
	switch {
	case !s.done:
		if s.backup != "" && !s.removes {
			_ = dir.Remove(s.backup)
		}
		return nil
	case s.backup != "":
		return dir.Rename(s.backup, name)
	}
	return dir.Remove(name)
}

func sumOf(content []byte) digest { return sha256.Sum256(content) }
