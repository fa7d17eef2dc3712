package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// doFiles hashes, and copies when there is a target, some files of one folder.
func (t *tree) doFiles(j job, buf *[]byte) error {
	entries := make([]Entry, 0, len(j.files))
	for i := range j.files {
		if t.stopped() {
			return nil
		}
		f := &j.files[i]
		do := t.doFile
		if f.stat.Mode&unix.S_IFMT == unix.S_IFLNK {
			do = t.doLink
		}
		e, err := do(j.dir, f, buf)
		if err != nil {
			return err
		}
		switch old := t.at(f.place); {
		case e == nil || j.dir.git || f.name == gitName:
		case e.Type == TypeLink && old != nil && old.equal(e):
			t.same[f.place] = true
		default:
			entries = append(entries, *e)
		}
	}
	t.keep(entries...)
	return nil
}

func (t *tree) doLink(dir *folder, f *found, _ *[]byte) (*Entry, error) {
	p := dir.child(f.name)
	target, err := readLink(int(dir.src), f.name)
	if err != nil {
		t.noteLeftOut(p, err)
		return nil, nil
	}
	if dir.dst != none {
		at := int(dir.dst)
		if err := unix.Symlinkat(target, at, f.name); err != nil {
			return nil, fmt.Errorf("copy link %q: %w", p, err)
		}
		times := []unix.Timespec{f.stat.Atim, f.stat.Mtim}
		if err := unix.UtimesNanoAt(at, f.name, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return nil, fmt.Errorf("copy link %q: %w", p, err)
		}
	}
	return &Entry{Path: Path(p), Type: TypeLink, Target: Path(target)}, nil
}

func (t *tree) doFile(dir *folder, f *found, buf *[]byte) (*Entry, error) {
	p := dir.child(f.name)
	sig := signatureOf(&f.stat)
	if old := t.at(f.place); old != nil && old.Type == TypeFile && old.sig.proves(sig) {
		e := *old
		e.Mode = uint32(f.stat.Mode) & 0o777
		return &e, nil
	}
	if !t.reads(Path(p), f.stat.Size) {
		return &Entry{Path: Path(p), Type: TypeFile, Mode: uint32(f.stat.Mode) & 0o777, Size: f.stat.Size, sig: sig}, nil
	}
	src, st, err := openFile(int(dir.src), f.name)
	if err != nil {
		return t.unreadable(p, &f.stat, err), nil
	}
	defer src.close()
	if dir.dst != none {
		return t.copyFile(dir, f.name, src, st, buf)
	}
	sum, err := t.digest(src, -1, st.Size, buf, true)
	if errors.Is(err, errRead) {
		return t.unreadable(p, st, err), nil
	}
	if err != nil {
		return nil, err
	}
	e := &Entry{Path: Path(p), Type: TypeFile, Mode: uint32(st.Mode) & 0o777, Size: sum.size, Hash: sum.hash, sig: signatureOf(st)}
	var after unix.Stat_t
	if unix.Fstat(int(src), &after) != nil || signatureOf(&after) != e.sig {
		e.sig.racy = true // it was being written while it was read
	}
	return e, nil
}

// reads reports whether a file has to be read to know whether it has changed: one
// that is too large to be recorded is not, unless it may still be what it was.
func (t *tree) reads(p Path, size int64) bool {
	if t.base == nil || size <= maxApply {
		return true
	}
	old := t.base.find(p)
	return old != nil && old.Type == TypeFile && old.Size == size && old.Hash != ""
}

// unreadable is the entry of a file that is there but whose content is not to
// be had: without one it would count as deleted. A copy simply lacks it.
func (t *tree) unreadable(p string, st *unix.Stat_t, err error) *Entry {
	t.noteLeftOut(p, err)
	if t.target != "" || vanished(err) {
		return nil
	}
	return &Entry{Path: Path(p), Type: TypeFile, Mode: uint32(st.Mode) & 0o777, Size: st.Size}
}

// copyFile writes and hashes in one pass: the hash is that of the copy, even
// if the source changes meanwhile.
func (t *tree) copyFile(dir *folder, name string, src descriptor, st *unix.Stat_t, buf *[]byte) (*Entry, error) {
	p := dir.child(name)
	fd, err := unix.Openat(int(dir.dst), name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("copy %q: %w", p, err)
	}
	dst := descriptor(fd)
	defer dst.close()
	// The hashes of git's own files are not needed, and its packs are large.
	wanted := !dir.git
	var sum digest
	switch cloned := st.Size > maxText && cloneFile(int(dst), int(src)) == nil; {
	case !cloned:
		sum, err = t.digest(src, dst, st.Size, buf, wanted)
	case wanted:
		sum, err = t.digest(dst, -1, st.Size, buf, wanted)
	}
	if err != nil {
		if errors.Is(err, errRead) {
			t.notes.note("%q was left out: %v", p, err)
			return nil, unix.Unlinkat(int(dir.dst), name, 0)
		}
		return nil, fmt.Errorf("copy %q: %w", p, err)
	}
	mode := uint32(st.Mode) & 0o777 // never set-uid, set-gid or sticky
	if err := unix.Fchmod(fd, mode); err != nil {
		return nil, fmt.Errorf("copy the mode of %q: %w", p, err)
	}
	if err := setTimes(int(dir.dst), name, st); err != nil {
		return nil, fmt.Errorf("copy the times of %q: %w", p, err)
	}
	var made unix.Stat_t
	if err := unix.Fstat(fd, &made); err != nil {
		return nil, fmt.Errorf("look at %q: %w", p, err)
	}
	return &Entry{Path: Path(p), Type: TypeFile, Mode: mode, Size: sum.size, Hash: sum.hash, sig: signatureOf(&made)}, nil
}

func setTimes(at int, name string, st *unix.Stat_t) error {
	return unix.UtimesNanoAt(at, name, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

type digest struct {
	hash string
	size int64
}

// errRead marks a failure of the source: that file is left out, the others are copied.
var errRead = errors.New("cannot be read")

// digest reads src to its end and writes it to dst unless that is -1. When
// wanted it takes the hash and keeps a small text in the pack.
func (t *tree) digest(src, dst descriptor, expect int64, buf *[]byte, wanted bool) (digest, error) {
	if want := int(min(expect, maxText)) + 1; len(*buf) < want {
		// It is doubled at least, for folders whose files become larger and larger.
		*buf = make([]byte, max(want, 2*len(*buf), 4<<10))
	}
	h := sha256.New()
	var total int64
	for {
		n, err := src.readFull(*buf)
		if err != nil {
			return digest{}, fmt.Errorf("%w: %w", errRead, err)
		}
		piece := (*buf)[:n]
		if wanted {
			h.Write(piece)
		}
		if dst >= 0 {
			if err := dst.writeAll(piece); err != nil {
				return digest{}, err
			}
		}
		if total += int64(n); total > expect && expect >= 0 { // it grows while it is read
			if err := t.count(total - expect); err != nil {
				return digest{}, err
			}
			expect = total
		}
		if n < len(*buf) {
			sum := digest{sumOf(h), total}
			if total == int64(n) && wanted && t.pack != nil {
				return sum, t.pack.put(sum.hash, piece)
			}
			return sum, nil
		}
		if t.stopped() {
			return digest{}, t.cause()
		}
	}
}

func (t *tree) cause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func sumOf(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// openAny opens what is at a path, which may be a link.
func openAny(path string) (descriptor, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		switch err {
		case nil:
			return descriptor(fd), nil
		case unix.EINTR:
		default:
			return none, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// descriptor is an open file without the poller that os.File brings: the
// copy of many small files is system calls and little else.
type descriptor int

func (d descriptor) close() { _ = unix.Close(int(d)) }

func (d descriptor) readFull(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		m, err := unix.Read(int(d), b[n:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, err
		case m == 0:
			return n, nil
		default:
			n += m
		}
	}
	return n, nil
}

func (d descriptor) writeAll(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(int(d), b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrShortWrite
		}
		b = b[n:]
	}
	return nil
}

// errNotRegular: there is something else at a path where a file was expected.
var errNotRegular = errors.New("not a regular file")

// openFile opens a regular file in a folder. It neither follows a link nor
// waits for the writer of a FIFO that took the file's place.
func openFile(at int, name string) (descriptor, *unix.Stat_t, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return -1, nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = unix.Close(fd)
		return -1, nil, errNotRegular
	}
	return descriptor(fd), &st, nil
}

func readLink(at int, name string) (string, error) {
	for size := 256; ; size *= 2 {
		b := make([]byte, size)
		n, err := unix.Readlinkat(at, name, b)
		if err != nil {
			return "", os.NewSyscallError("readlink", err)
		}
		if n < size {
			return string(b[:n]), nil
		}
	}
}

// hash reads the rest of the file.
func (d descriptor) hash() (sum string, size int64, err error) {
	h := sha256.New()
	buf := make([]byte, 64<<10)
	for {
		n, err := d.readFull(buf)
		if err != nil {
			return "", 0, err
		}
		h.Write(buf[:n])
		size += int64(n)
		if n < len(buf) {
			return sumOf(h), size, nil
		}
	}
}
