package main

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const setIDs = unix.S_ISUID | unix.S_ISGID

// setIDAttempts are all known ways to leave a file that gives its user the
// rights of its owner. A workspace is on the host, and there such a file works
// for every user of the machine.
func setIDAttempts(dir string) []attempt {
	if dir == "" {
		dir = "/tmp"
	}
	file := dir + "/escape-setid"
	var list []attempt
	for _, bit := range []struct {
		name string
		mode uint32
	}{{"setuid", unix.S_ISUID | 0o755}, {"setgid", unix.S_ISGID | 0o755}} {
		for _, way := range setIDWays(dir, file, bit.mode) {
			list = append(list, attempt{"make a " + bit.name + " file by " + way.name, func() error {
				defer func() { _ = os.Remove(file) }()
				if err := way.try(); err != nil {
					return err
				}
				var st unix.Stat_t
				if err := unix.Lstat(file, &st); err != nil {
					return err
				}
				return stopped(st.Mode&setIDs == 0, fmt.Sprintf("its mode is %#o", st.Mode))
			}})
		}
	}
	return append(list,
		attempt{"give a file capabilities", func() error { return fileCapabilities(file) }},
		attempt{"make a whiteout device", func() error {
			defer func() { _ = os.Remove(file) }()
			return unix.Mknod(file, unix.S_IFCHR|0o600, 0)
		}})
}

// setIDWays set a mode on a file that is not there yet.
func setIDWays(dir, file string, mode uint32) []attempt {
	name := text(file)
	here := ^uintptr(99) // AT_FDCWD
	after := func(change func(fd int) error) func() error {
		return func() error {
			fd, err := unix.Open(file, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o700)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			return change(fd)
		}
	}
	how := unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: uint64(mode)}
	return []attempt{
		{"chmod", after(func(int) error { return unix.Chmod(file, mode) })},
		{"fchmod", after(func(fd int) error { return unix.Fchmod(fd, mode) })},
		{"fchmodat", after(func(int) error { return sys(unix.SYS_FCHMODAT, here, name, uintptr(mode)) })},
		{"fchmodat2", after(func(int) error { return sys(unix.SYS_FCHMODAT2, here, name, uintptr(mode), 0) })},
		{"open", func() error { return closing(unix.Open(file, unix.O_CREAT|unix.O_WRONLY, mode)) }},
		{"openat", func() error { return closing(unix.Openat(unix.AT_FDCWD, file, unix.O_CREAT|unix.O_WRONLY, mode)) }},
		{"openat2", func() error { return closing(unix.Openat2(unix.AT_FDCWD, file, &how)) }},
		{"a file without a name", func() error {
			fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY, mode)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, file, unix.AT_SYMLINK_FOLLOW)
		}},
		{"mknod", func() error { return unix.Mknod(file, unix.S_IFREG|mode, 0) }},
		{"mknodat", func() error { return unix.Mknodat(unix.AT_FDCWD, file, unix.S_IFREG|mode, 0) }},
	}
}

func closing(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// fileCapabilities writes all capabilities to a file, in the version with the user
// to whom they belong and in the one without.
func fileCapabilities(file string) error {
	if err := os.WriteFile(file, nil, 0o700); err != nil {
		return err
	}
	defer func() { _ = os.Remove(file) }()
	const size2, size3 = 20, 24
	value := make([]byte, size3)
	for i := 4; i < size2; i += 4 {
		binary.LittleEndian.PutUint32(value[i:], ^uint32(0))
	}
	binary.LittleEndian.PutUint32(value, 0x02000001) // VFS_CAP_REVISION_2, effective
	if unix.Setxattr(file, "security.capability", value[:size2], 0) == nil {
		return nil
	}
	binary.LittleEndian.PutUint32(value, 0x03000001)
	return unix.Setxattr(file, "security.capability", value, 0)
}
