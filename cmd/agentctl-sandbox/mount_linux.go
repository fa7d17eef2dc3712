package main

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// folder is an opened folder below which mounts are made. Names are followed one
// by one and never through a link: a link inside a workspace must not lead a mount
// to somewhere else.
type folder struct{ fd int }

const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// attributes of mounts.
const (
	readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readable = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	data     = readable | unix.MOUNT_ATTR_NOEXEC
)

func openFolder(name string) (folder, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return folder{fd}, err
}

func (d folder) close() { _ = unix.Close(d.fd) }

// open opens the file at an absolute path below the folder.
func (d folder) open(name string) (int, error) {
	rel := strings.TrimPrefix(name, "/")
	if rel == "" {
		rel = "."
	}
	return openat2(d.fd, rel, beneath)
}

// openat2 opens a file without access to its contents (O_PATH).
func openat2(dir int, name string, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve}
	for {
		fd, err := unix.Openat2(dir, name, &how)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) { // again: something was renamed meanwhile
			return fd, err
		}
	}
}

// place opens a mount point. If it does not exist, it creates a folder or an
// empty file.
func (d folder) place(name string, dir bool) (int, error) {
	at, err := unix.Dup(d.fd)
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(at)
	parts := strings.Split(strings.Trim(name, "/"), "/")
	for i, part := range parts {
		last := i == len(parts)-1
		next, err := openat2(at, part, beneath)
		if errors.Is(err, unix.ENOENT) {
			if last && !dir {
				err = unix.Mknodat(at, part, unix.S_IFREG|0o644, 0)
			} else {
				err = unix.Mkdirat(at, part, 0o755)
			}
			if err == nil || errors.Is(err, unix.EEXIST) {
				next, err = openat2(at, part, beneath)
			}
		}
		_ = unix.Close(at)
		if errors.Is(err, unix.ELOOP) {
			return -1, fmt.Errorf("/%s is a link: %w", path.Join(parts[:i+1]...), err)
		}
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

// bind shows a file or folder of the host, with all that is mounted below it.
func (d folder) bind(source, target string, attrs uint64) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	defer func() { _ = unix.Close(tree) }()
	if err := d.attach(tree, target, attrs); err != nil {
		return fmt.Errorf("bind %s at %s: %w", source, target, err)
	}
	return nil
}

// bindReal is bind for a source on a path without links: the path of a manifest
// may be in a folder where another tool can write, and put a link.
func (d folder) bindReal(source, target string, attrs uint64) error {
	at, err := openat2(unix.AT_FDCWD, source, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
	if err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	defer func() { _ = unix.Close(at) }()
	tree, err := clone(at, unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	defer func() { _ = unix.Close(tree) }()
	if err := d.attach(tree, target, attrs); err != nil {
		return fmt.Errorf("bind %s at %s: %w", source, target, err)
	}
	return nil
}

// attach attaches a detached mount at target.
func (d folder) attach(tree int, target string, attrs uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return err
	}
	at, err := d.place(target, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	return cover(tree, at, attrs)
}

// cover sets the attributes of a detached mount and puts it over what is open at at.
func cover(tree, at int, attrs uint64) error {
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attrs}); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// clone returns a detached copy of what is open at fd, without or with what is
// mounted below it.
func clone(fd int, recursive uint) (int, error) {
	return unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|recursive)
}

// fresh mounts a new file system of a kind.
func (d folder) fresh(kind, target string, attrs int, options map[string]string) error {
	fail := func(err error) error { return fmt.Errorf("mount %s at %s: %w", kind, target, err) }
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = unix.Close(fs) }()
	for k, v := range options {
		if err := unix.FsconfigSetString(fs, k, v); err != nil {
			return fail(err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return fail(err)
	}
	tree, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = unix.Close(tree) }()
	at, err := d.place(target, true)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = unix.Close(at) }()
	if err := unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fail(err)
	}
	return nil
}
