package record

import (
	"path"

	"golang.org/x/sys/unix"
)

// Rights are the Landlock rules of a command, in a form in which they can be looked up:
// the kernel does not say what a ruleset holds.
type Rights struct {
	// Handled are the rights to files that need a rule, as LANDLOCK_ACCESS_FS.
	Handled uint64
	// Listen and Connect report whether TCP connections of that direction are refused.
	Listen, Connect bool
	// Abstract reports whether the command cannot reach sockets in the abstract name space
	// that are not its own.
	Abstract bool

	rules map[inode]uint64
	// whole are programs that may be executed with all that the kernel executes with them.
	whole map[inode]chain
}

// inode identifies a file, whatever its name is: rules belong to files, not to paths.
type inode struct{ dev, ino uint64 }

func inodeOf(st *unix.Stat_t) inode { return inode{uint64(st.Dev), st.Ino} } //nolint:unconvert // its type differs by architecture

// Add adds a rule for a file, or for a folder and everything below it.
func (r *Rights) Add(st *unix.Stat_t, rights uint64) {
	if r.rules == nil {
		r.rules = map[inode]uint64{}
	}
	r.rules[inodeOf(st)] |= rights
}

// chain is what the kernel executes with a program, as it was when the rules were made.
type chain struct {
	since unix.Timespec
	// path is that of the program, without links.
	path  string
	steps []Step
}

// Step is an interpreter or a loader that has a rule.
type Step struct {
	// Path is absolute, as the program names it.
	Path string
	file inode
}

// NewStep returns the step with a name; false if the name is relative.
func NewStep(name string, st *unix.Stat_t) (Step, bool) {
	return Step{name, inodeOf(st)}, path.IsAbs(name)
}

// Whole notes that a program, by its path without links, may be executed with these, which
// have rules. Without the note the program is looked up and read each time that it is executed.
func (r *Rights) Whole(path string, st *unix.Stat_t, steps []Step) {
	if r.whole == nil {
		r.whole = map[inode]chain{}
	}
	r.whole[inodeOf(st)] = chain{st.Ctim, path, steps}
}

// mayRun returns the path of a program that is still one of those.
func (r *Rights) mayRun(st *unix.Stat_t) (path string, ok bool) {
	c, ok := r.whole[inodeOf(st)]
	if !ok || c.since != st.Ctim {
		return "", false
	}
	for _, s := range c.steps {
		var st unix.Stat_t
		if unix.Stat(s.Path, &st) != nil || inodeOf(&st) != s.file {
			return "", false
		}
	}
	return c.path, true
}

// below returns those of the wanted rights that the rules give to a folder and to all
// folders above it. A wanted right that is not handled is given.
func (r *Rights) below(folder string, want uint64) uint64 {
	given := want &^ r.Handled
	for {
		var st unix.Stat_t
		if given&want == want {
			return given
		}
		if unix.Lstat(folder, &st) == nil {
			given |= r.rules[inodeOf(&st)] & want
		}
		if folder == "/" || folder == "." {
			return given
		}
		folder = path.Dir(folder)
	}
}

// of returns those of the wanted rights that the rules give to what a path leads to.
func (r *Rights) of(t *target, want uint64) uint64 {
	given := r.rules[inodeOf(&t.stat)] & want
	return given | r.below(t.folder, want&^given)
}

// Rights of Landlock, by the type of a file.
const (
	makeFile = unix.LANDLOCK_ACCESS_FS_MAKE_REG
	makeLink = unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	makeDir  = unix.LANDLOCK_ACCESS_FS_MAKE_DIR
	write    = unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	cut      = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	run      = unix.LANDLOCK_ACCESS_FS_EXECUTE
)

// toMake is the right to make a file of a type.
func toMake(kind uint32) uint64 {
	switch kind {
	case unix.S_IFLNK:
		return makeLink
	case unix.S_IFDIR:
		return makeDir
	case unix.S_IFCHR:
		return unix.LANDLOCK_ACCESS_FS_MAKE_CHAR
	case unix.S_IFBLK:
		return unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	case unix.S_IFIFO:
		return unix.LANDLOCK_ACCESS_FS_MAKE_FIFO
	case unix.S_IFSOCK:
		return unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	}
	return makeFile
}

// toRemove is the right to remove a file of a type.
func toRemove(kind uint32) uint64 {
	if kind == unix.S_IFDIR {
		return unix.LANDLOCK_ACCESS_FS_REMOVE_DIR
	}
	return unix.LANDLOCK_ACCESS_FS_REMOVE_FILE
}

// may reports whether the rules allow all that is wanted of a folder.
func (r *Rights) may(folder string, want uint64) bool {
	return r == nil || r.below(folder, want)&want == want
}

// mayDo reports whether the rules allow all that is wanted of a target.
func (r *Rights) mayDo(t *target, want uint64) bool {
	return r == nil || r.of(t, want)&want == want
}

// mayMove reports whether the rules allow to give what old leads to the name that next
// leads to; exchanged is that the two are exchanged, moved that the old name is removed.
//
// Between two folders, the kernel also refuses a move without the right to refer, and one
// that would give a file more rights than it had. It answers EXDEV, as between two file
// systems, and programs copy instead: that is allowed here, since the copy is judged.
func (r *Rights) mayMove(old, next *target, exchanged, moved bool) bool {
	if r == nil {
		return true
	}
	from, to := uint64(0), toMake(old.kind())
	if exchanged {
		from = toMake(next.kind())
	}
	if moved {
		from |= toRemove(old.kind())
		if next.there {
			to |= toRemove(next.kind())
		}
	}
	return r.may(old.folder, from) && r.may(next.folder, to)
}

// others reports whether two targets are in different mounts, between which nothing can be
// moved.
func others(a, b *target) bool {
	id := func(folder string) (n uint64, ok bool) {
		var st unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, folder, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st)
		return st.Mnt_id, err == nil && st.Mask&unix.STATX_MNT_ID != 0
	}
	first, ok1 := id(a.folder)
	second, ok2 := id(b.folder)
	return ok1 && ok2 && first != second
}
