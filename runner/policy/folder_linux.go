package policy

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openBeneath opens the folder rel of an absolute folder top for listing. The
// kernel refuses any other type of file without opening it, and any step that
// is a symbolic link or leaves top, so a program that exchanges a folder for a
// link or a FIFO meanwhile gains nothing. With sameDevice no mount point is crossed.
func openBeneath(top, rel string, sameDevice bool) (*os.File, error) {
	at, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: top, Err: err}
	}
	defer func() { _ = unix.Close(at) }()
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK | unix.O_CLOEXEC
	how := unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	if sameDevice {
		how.Resolve |= unix.RESOLVE_NO_XDEV
	}
	fd, err := unix.Openat2(at, rel, &how)
	if errors.Is(err, unix.ENOSYS) && !sameDevice { // before Linux 5.6
		fd, err = openSteps(at, rel, flags)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: top + "/" + rel, Err: err}
	}
	return os.NewFile(uintptr(fd), top+"/"+rel), nil
}

// openRegular opens a regular file for reading. What it is, is established with a
// descriptor that opens nothing: a device or a FIFO is never opened.
func openRegular(file string) (*os.File, error) {
	at, err := unix.Open(file, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: file, Err: err}
	}
	defer func() { _ = unix.Close(at) }()
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: file, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &os.PathError{Op: "open", Path: file, Err: errNotRegular}
	}
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(at), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: file, Err: err}
	}
	return os.NewFile(uintptr(fd), file), nil
}
