package record

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"agentctl.dev/agentctl/plugins/sdk"
)

// attempt is what one system call tries to do.
type attempt struct {
	op string
	// path and to are those of files, argv those of the program at path.
	path, to string
	argv     []string
	// address is that of a connection.
	address string
	// refused reports that the rules do not allow it.
	refused bool
	// cut reports that it is not whole.
	cut bool
}

// look finds out what a system call of a process does. It returns nil for one that does
// nothing that is recorded: one that fails whatever the rules are, or that opens a device or
// a pipe. The order of the tests is that of the kernel.
type look struct {
	*process
	call *call
	args [6]uint64
	// rights are nil for a command without rules.
	rights *Rights
	// own are names of sockets in the abstract name space that the command has bound.
	own map[string]bool
}

// number is an argument that is a descriptor or flags, 0 if there is none.
func (l *look) number(n int) int32 {
	if n == none {
		return 0
	}
	return int32(uint32(l.args[n])) //nolint:gosec // the kernel takes the low half
}

// dir is the descriptor that a path is relative to.
func (l *look) dir(n int) int32 {
	if n == none {
		return unix.AT_FDCWD
	}
	return l.number(n)
}

// attempt is what the call does. An error that is errUnread means that it is not known.
func (l *look) attempt() (*attempt, error) {
	if l.call.path == none {
		return l.setModeOf(l.number(l.call.dir))
	}
	if l.call.does == connect || l.call.does == bind {
		return l.socket()
	}
	name, err := l.path(l.args[l.call.path])
	if err != nil {
		return nil, err
	}
	return withPath[l.call.does](l, name)
}

// withPath are what looks at calls with a path.
var withPath = map[deed]func(*look, string) (*attempt, error){
	open: (*look).open, openHow: (*look).open, execute: (*look).execute, truncate: (*look).truncate, unlink: (*look).remove, rmdir: (*look).remove,
	rename: (*look).move, link: (*look).move, chmod: (*look).setMode,
	symlink: func(l *look, name string) (*attempt, error) { return l.make(name, unix.S_IFLNK) },
	mkdir:   func(l *look, name string) (*attempt, error) { return l.make(name, unix.S_IFDIR) },
	mknod: func(l *look, name string) (*attempt, error) {
		return l.make(name, uint32(l.number(l.call.more))&unix.S_IFMT) //nolint:gosec // a mode
	},
}

// setMode is the mode of a file, which no rule is about.
func (l *look) setMode(name string) (*attempt, error) {
	how := follow
	if l.number(l.call.flags)&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how = keep
	}
	t, err := l.whole(name, how)
	if err != nil || !t.there || t.nameless() {
		return nil, nil //nolint:nilerr,nilnil // it fails
	}
	return &attempt{op: sdk.RecordMode, path: t.path()}, nil
}

// setModeOf is the mode of a file that is open.
func (l *look) setModeOf(fd int32) (*attempt, error) {
	t, err := l.descriptor(fd)
	if err != nil || t.nameless() {
		return nil, nil //nolint:nilerr,nilnil // it fails, or is not about a file
	}
	return &attempt{op: sdk.RecordMode, path: t.path()}, nil
}

// whole finds a path that may be empty: then the descriptor is meant.
func (l *look) whole(name string, how last) (target, error) {
	if name == "" && l.number(l.call.flags)&unix.AT_EMPTY_PATH != 0 {
		return l.descriptor(l.dir(l.call.dir))
	}
	return l.find(l.dir(l.call.dir), name, how)
}

// endsWithName reports whether a path ends with a name: what removes and makes takes no other.
func endsWithName(p string) bool {
	base := path.Base(p)
	return base != "." && base != ".." && base != "/"
}

// allFlags are those of creat.
const allFlags = unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC

func (l *look) open(name string) (*attempt, error) {
	flags := uint64(allFlags)
	switch {
	case l.call.does == openHow:
		var how [8]byte
		n, err := l.read(l.args[l.call.more], how[:])
		if err != nil || n < len(how) {
			return nil, errUnread
		}
		flags = word(how[:])
		if flags&unix.O_PATH != 0 || flags&writes == 0 {
			return nil, nil //nolint:nilnil // it changes nothing
		}
	case l.call.flags != none:
		flags = uint64(uint32(l.number(l.call.flags))) //nolint:gosec // flags
	}
	access := flags & unix.O_ACCMODE
	changes := access == unix.O_WRONLY || access == unix.O_RDWR
	how := follow
	if flags&unix.O_NOFOLLOW != 0 || flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL {
		how = keep
	}
	t, err := l.find(l.dir(l.call.dir), name, how)
	isDir := t.kind() == unix.S_IFDIR
	switch {
	case err != nil, t.nameless():
		return nil, nil //nolint:nilerr,nilnil // it fails, or opens a pipe
	case flags&unix.O_TMPFILE == unix.O_TMPFILE:
		if !t.there || !isDir || !changes || l.rights.mayDo(&t, write) {
			return nil, nil //nolint:nilnil // a file without a name
		}
		return &attempt{op: sdk.RecordCreate, path: t.path(), refused: true}, nil
	case !t.there:
		if flags&unix.O_CREAT == 0 || flags&unix.O_DIRECTORY != 0 || t.slash {
			return nil, nil //nolint:nilnil // it fails
		}
		want := uint64(makeFile)
		if changes {
			want |= write
		}
		return &attempt{op: sdk.RecordCreate, path: t.path(), refused: !l.rights.may(t.folder, want)}, nil
	case flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL, isDir, flags&unix.O_DIRECTORY != 0, t.kind() == unix.S_IFLNK:
		return nil, nil //nolint:nilnil // it fails, or does nothing
	}
	var want uint64
	op := sdk.RecordWrite
	if changes {
		want |= write
	} else {
		op = sdk.RecordTruncate
	}
	if flags&unix.O_TRUNC != 0 && t.kind() == unix.S_IFREG {
		want |= cut
	}
	a := &attempt{op: op, path: t.path(), refused: !l.rights.mayDo(&t, want)}
	if want == 0 || t.kind() != unix.S_IFREG && !a.refused {
		return nil, nil //nolint:nilnil // nothing is kept in a device or a pipe
	}
	return a, nil
}

func (l *look) truncate(name string) (*attempt, error) {
	t, err := l.find(unix.AT_FDCWD, name, follow)
	if err != nil || !t.there || t.nameless() || t.kind() != unix.S_IFREG {
		return nil, nil //nolint:nilerr,nilnil // it fails
	}
	return &attempt{op: sdk.RecordTruncate, path: t.path(), refused: !l.rights.mayDo(&t, cut)}, nil
}

func (l *look) remove(path string) (*attempt, error) {
	t, err := l.find(l.dir(l.call.dir), path, never)
	if err != nil || !t.there || t.nameless() || !endsWithName(path) {
		return nil, nil //nolint:nilerr,nilnil // it fails
	}
	want := uint64(unix.LANDLOCK_ACCESS_FS_REMOVE_FILE)
	if l.call.does == rmdir || l.number(l.call.flags)&unix.AT_REMOVEDIR != 0 {
		want = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR
	} else if t.slash {
		return nil, nil //nolint:nilnil // it fails
	}
	return &attempt{op: sdk.RecordRemove, path: t.path(), refused: !l.rights.may(t.folder, want)}, nil
}

func (l *look) make(path string, kind uint32) (*attempt, error) {
	t, err := l.find(l.dir(l.call.dir), path, never)
	if err != nil || t.there || t.nameless() || t.slash && kind != unix.S_IFDIR {
		return nil, nil //nolint:nilerr,nilnil // it fails
	}
	return &attempt{op: sdk.RecordCreate, path: t.path(), refused: !l.rights.may(t.folder, toMake(kind))}, nil
}

// move is a new name for something, instead of its old one or beside it.
func (l *look) move(path string) (*attempt, error) {
	c, flags := l.call, l.number(l.call.flags)
	next, err := l.process.path(l.args[c.path2])
	if err != nil {
		return nil, err
	}
	moved, how, op := c.does == rename, never, sdk.RecordRename
	if !moved {
		op, how = sdk.RecordLink, keep
		if flags&unix.AT_SYMLINK_FOLLOW != 0 {
			how = follow
		}
	}
	from, err := l.whole(path, how)
	to, err2 := l.find(l.dir(c.dir2), next, never)
	exchanged := moved && flags&unix.RENAME_EXCHANGE != 0
	switch {
	case err != nil, err2 != nil, !from.there, from.nameless(), to.nameless(),
		to.there && (!moved || flags&unix.RENAME_NOREPLACE != 0), !to.there && exchanged,
		moved && (!endsWithName(path) || !endsWithName(next)),
		moved && (within(to.path(), from.path()) || within(from.path(), to.path())) && from.path() != to.path(),
		!moved && to.slash, from.slash && from.kind() != unix.S_IFDIR,
		to.slash && (exchanged && to.kind() != unix.S_IFDIR || !exchanged && from.kind() != unix.S_IFDIR),
		others(&from, &to):
		return nil, nil //nolint:nilerr,nilnil // it fails
	}
	return &attempt{op: op, path: from.path(), to: to.path(), refused: !l.rights.mayMove(&from, &to, exchanged, moved)}, nil
}

// within reports whether a path is below a folder, or is it.
func within(p, folder string) bool {
	return p == folder || strings.HasPrefix(p, strings.TrimSuffix(folder, "/")+"/")
}
