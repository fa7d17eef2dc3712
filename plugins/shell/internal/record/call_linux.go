package record

import "golang.org/x/sys/unix"

// deed is what a system call does.
type deed int

const (
	open     deed = iota + 1 // a file, to write; or to create it
	openHow                  // the same, with the flags in memory
	truncate                 // a file by its path
	unlink                   // remove a name; a folder with the flag AT_REMOVEDIR
	rmdir                    // remove a folder
	rename                   // give another name
	link                     // give a further name
	symlink                  // make a symbolic link
	mkdir                    // make a folder
	mknod                    // make a file of any type
	chmod                    // set a mode by path
	fchmod                   // set a mode by descriptor
	execute                  // a program
	connect                  // a socket
	bind                     // a socket to an address of its own
)

// none is an argument that a system call does not have.
const none = -1

// call is a system call that is recorded. Its fields are numbers of arguments.
type call struct {
	number uintptr
	does   deed
	// dir is a descriptor that path is relative to; none is the current folder. For calls
	// with a descriptor and no path it is that.
	dir, path int
	// dir2 and path2 are the new name of a call that has two.
	dir2, path2 int
	// flags are those of open and of calls ending in at.
	flags int
	// more is the mode of mknod, the arguments of a program, the length of an address.
	more int
}

// at is a call with one path.
func at(number uintptr, does deed, dir, path, flags, more int) call {
	return call{number, does, dir, path, none, none, flags, more}
}

// calls are all system calls that are recorded, the most frequent first.
var calls = append([]call{
	at(unix.SYS_OPENAT, open, 0, 1, 2, none),
	at(unix.SYS_EXECVE, execute, none, 0, none, 1),
	at(unix.SYS_EXECVEAT, execute, 0, 1, 4, 2),
	at(unix.SYS_OPENAT2, openHow, 0, 1, none, 2),
	at(unix.SYS_TRUNCATE, truncate, none, 0, none, none),
	at(unix.SYS_UNLINKAT, unlink, 0, 1, 2, none),
	{unix.SYS_RENAMEAT, rename, 0, 1, 2, 3, none, none},
	{unix.SYS_RENAMEAT2, rename, 0, 1, 2, 3, 4, none},
	{unix.SYS_LINKAT, link, 0, 1, 2, 3, 4, none},
	at(unix.SYS_SYMLINKAT, symlink, 1, 2, none, none),
	at(unix.SYS_MKDIRAT, mkdir, 0, 1, none, none),
	at(unix.SYS_MKNODAT, mknod, 0, 1, none, 2),
	at(unix.SYS_FCHMODAT, chmod, 0, 1, none, none),
	at(unix.SYS_FCHMODAT2, chmod, 0, 1, 3, none),
	at(unix.SYS_FCHMOD, fchmod, 0, none, none, none),
	at(unix.SYS_CONNECT, connect, 0, 1, none, 2),
	at(unix.SYS_BIND, bind, 0, 1, none, 2),
}, callsHere...)

// callOf returns the call of a number, nil for one that is not recorded.
func callOf(number int32) *call {
	for i := range calls {
		if calls[i].number == uintptr(number) { //nolint:gosec // a number of the kernel
			return &calls[i]
		}
	}
	return nil
}
