package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"agentctl.dev/agentctl/plugins/sdk"
)

// target is a file that is about to change. Its folder is held open, so that
// whatever is swapped on the way to it makes no difference.
type target struct {
	w *workspace
	// at is its name below the root, rel how the model names it, real where it is.
	at, rel, real string
	dir           *os.Root
	name          string
	unlock        func()
	// info and old describe the file before; info is nil for a new one.
	info fs.FileInfo
	old  []byte
	// like is the file whose owner and mode a new one gets; nil is none.
	like fs.FileInfo
	// raw: the content is moved or deleted as it is, and need not be text.
	raw bool
}

// target finds the file, holds its folder and its lock, and reads it.
func (s *set) target(ctx context.Context, w *workspace, rel string, create bool) (*target, error) {
	if w.approved && !w.writable {
		return nil, sdk.Errorf("%s may only be read: that is what was approved for this call", w.show(rel))
	}
	t := &target{w: w, at: rel, rel: w.show(rel)}
	return s.hold(ctx, t, create, func() error { return nil })
}

// hold opens the folder of a target, takes its lock and reads it, unless the caller
// refuses it where it has turned out to be.
func (s *set) hold(ctx context.Context, t *target, create bool, refuse func() error) (*target, error) {
	err := t.locate(create)
	if err == nil {
		err = refuse()
	}
	if err == nil {
		t.unlock, err = s.locks.acquire(ctx, t.real)
	}
	if err == nil {
		err = t.load(create)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *target) close() {
	if t.unlock != nil {
		t.unlock()
	}
	if t.dir != nil {
		_ = t.dir.Close()
	}
}

// locate opens the folder in which the file really is.
func (t *target) locate(create bool) error {
	if inGit(t.rel) {
		return t.refuseGit()
	}
	dir, name, err := t.place()
	if errors.Is(err, fs.ErrNotExist) && create && !t.w.approved {
		dir, name, err = t.make()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return t.w.missing(t.at)
	}
	if err != nil {
		return err
	}
	t.dir, t.name = dir, name
	at, err := realPath(dir)
	if err != nil {
		return err
	}
	t.real = path.Join(at, name)
	inside, ok := beneath(t.w.real, t.real)
	if !ok {
		return t.w.outside(t.rel)
	}
	if inGit(t.w.show(inside)) {
		return t.refuseGit()
	}
	return nil
}

func (t *target) refuseGit() error {
	return sdk.Errorf("%s is in git's own folder, which is not written to: its files run programs. Use git commands", t.rel)
}

// place opens the folder of a file that exists, links followed.
func (t *target) place() (*os.Root, string, error) {
	// Another call may replace the file between two steps of this; then the path
	// of the one we hold leads nowhere. Each attempt takes microseconds.
	for range 1000 {
		dir, name, err := t.try()
		if !errors.Is(err, errMoved) {
			return dir, name, err
		}
	}
	return nil, "", sdk.Errorf("%s is being replaced all the time", t.rel)
}

// errMoved: a file was replaced while its path was resolved.
var errMoved = errors.New("the file was replaced")

// try is one attempt of place.
func (t *target) try() (*os.Root, string, error) {
	f, info, err := openRegular(t.w.root, t.at)
	if errors.Is(err, fs.ErrNotExist) {
		if st, e := t.w.root.Lstat(t.at); e == nil && st.Mode()&fs.ModeSymlink != 0 {
			return nil, "", sdk.Errorf("%s is a symlink to nothing", t.rel)
		}
		return nil, "", err
	}
	if errors.As(err, new(*irregularError)) {
		return nil, "", sdk.Errorf("%w", err)
	}
	if err != nil {
		return nil, "", t.w.fail("open", t.at, err)
	}
	defer f.Close()
	if err := t.w.confirm(f); err != nil {
		return nil, "", err
	}
	at, err := realFile(f)
	if err != nil {
		return nil, "", err
	}
	inside, ok := beneath(t.w.real, at)
	if !ok {
		return nil, "", t.w.outside(t.rel)
	}
	dir, err := t.w.root.OpenRoot(parent(inside))
	if err != nil {
		return nil, "", errMoved
	}
	if st, err := dir.Lstat(path.Base(inside)); err != nil || !os.SameFile(st, info) {
		return nil, "", errors.Join(errMoved, dir.Close())
	}
	return dir, path.Base(inside), nil
}

// make opens the folder of a file that does not exist and makes the folders
// that are missing, unless they would be git's.
func (t *target) make() (*os.Root, string, error) {
	have := parent(t.at)
	for have != "." {
		if _, err := t.w.root.Lstat(have); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, "", t.w.fail("open", t.at, err)
		}
		have = parent(have)
	}
	base, err := t.w.root.OpenRoot(have)
	if err != nil {
		return nil, "", t.w.fail("open", t.at, err)
	}
	defer base.Close()
	at, err := realPath(base)
	if err != nil {
		return nil, "", err
	}
	if inside, ok := beneath(t.w.real, at); !ok || inGit(inside) {
		return nil, "", t.refuseGit()
	}
	rest := relative(have, parent(t.at))
	if have == parent(t.at) {
		rest = "."
	}
	if err := base.MkdirAll(rest, 0o777); err != nil {
		return nil, "", t.w.fail("make the folder of", t.at, err)
	}
	dir, err := base.OpenRoot(rest)
	if err != nil {
		return nil, "", t.w.fail("open", t.at, err)
	}
	return dir, path.Base(t.at), nil
}

// load reads the file as it is now.
func (t *target) load(create bool) error {
	f, info, err := openRegular(t.dir, t.name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		return nil
	case errors.As(err, new(*irregularError)):
		return sdk.Errorf("%w", err)
	case err != nil:
		return t.w.fail("open", t.at, err)
	}
	defer f.Close()
	if info.Mode().Perm()&0o222 == 0 {
		return sdk.Errorf("%s is read-only (mode %s)", t.rel, info.Mode().Perm())
	}
	if info.Size() > maxEdit {
		return sdk.Errorf("%s has %d bytes, more than the %d that can be edited here; use a command such as sed", t.rel, info.Size(), maxEdit)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxEdit+1))
	if err != nil {
		return sdk.Errorf("read %s: %w", t.rel, err)
	}
	if head := data[:min(len(data), sniffLen)]; binary(head) && !t.raw {
		return sdk.Errorf("%s is not text but %s: it cannot be changed as text", t.rel, binaryKind(head))
	}
	t.info, t.old = info, data
	return nil
}

// known insists that the run has seen the file as it is now: a model must not
// overwrite what it does not know.
func (t *target) known(s *set, run, verb string) error {
	have, ok := s.seen.get(run, t.real)
	switch {
	case !ok:
		return sdk.Errorf("%s was not read in this run: read it first, then %s", t.rel, verb)
	case have != sha256.Sum256(t.old):
		return sdk.Errorf("%s has changed since it was read: read it again, then %s", t.rel, verb)
	}
	return nil
}

// store puts the new content in place of the file in one step: readers see the
// old file or the new one. It is not flushed to disk; the workspace is a working
// copy, and a flush would cost more than the whole call.
func (t *target) store(content []byte) (digest, error) {
	sum := digest(sha256.Sum256(content))
	if t.info != nil && bytes.Equal(content, t.old) {
		return sum, nil
	}
	if t.w.approved {
		return sum, t.overwrite(content)
	}
	temp := ".agentctl-" + rand.Text() + ".tmp"
	err := t.fill(temp, content)
	if err == nil {
		err = t.exclusively(func() error {
			if err := t.unchanged(); err != nil {
				return err
			}
			return t.dir.Rename(temp, t.name)
		})
	}
	if err != nil {
		_ = t.dir.Remove(temp)
		return sum, t.w.fail("write", t.at, err)
	}
	return sum, nil
}

// overwrite writes into the file itself: outside the workspace nothing but the file
// was approved, so no other can be made beside it and take its place.
func (t *target) overwrite(content []byte) (err error) {
	if err := t.unchanged(); err != nil {
		return err
	}
	f, err := t.dir.OpenFile(t.name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return t.w.fail("write", t.at, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	now, err := f.Stat()
	if err == nil {
		err = t.w.confirm(f)
	}
	if err == nil && !os.SameFile(now, t.info) {
		err = sdk.Errorf("%s was replaced while it was being written: read it again", t.rel)
	}
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Truncate(int64(len(content)))
	}
	if err != nil {
		return t.w.fail("write", t.at, err)
	}
	return nil
}

// fill makes the temporary file, with the owner and mode of the one it replaces.
func (t *target) fill(temp string, content []byte) (err error) {
	f, err := t.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	like := t.info
	if like == nil {
		like = t.like
	}
	if like != nil {
		if st, ok := like.Sys().(*syscall.Stat_t); ok && (int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid()) {
			_ = f.Chown(int(st.Uid), int(st.Gid)) // only root may; others keep their own
		}
		if err := f.Chmod(like.Mode()); err != nil {
			return err
		}
	}
	_, err = f.Write(content)
	return err
}

// unchanged compares the file again: a command may have written to it since it was read.
func (t *target) unchanged() error {
	now, err := t.dir.Lstat(t.name)
	if t.info == nil {
		if err == nil {
			return sdk.Errorf("%s appeared while it was being written: read it first", t.rel)
		}
		return nil
	}
	if err != nil || !os.SameFile(now, t.info) || now.Size() != t.info.Size() || !now.ModTime().Equal(t.info.ModTime()) {
		return sdk.Errorf("%s changed while it was being written: read it again", t.rel)
	}
	return nil
}
