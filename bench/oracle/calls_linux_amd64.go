package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attempt is a system call that has begun.
type attempt struct {
	kind  Kind
	path  string
	opens bool // the path is that of the file descriptor it returns
	// gone is the old name of a file that is renamed.
	gone string
}

// form says where a system call has the path that it changes.
type form struct {
	kind Kind
	// folder and path are the numbers of the arguments: folder -1 is the current one.
	folder, path int
	// follow is set when a link is followed.
	follow bool
}

// forms are the system calls that change something by its name.
var forms = map[uint64]form{
	unix.SYS_TRUNCATE: {Write, -1, 0, true},
	unix.SYS_UNLINK:   {Remove, -1, 0, false}, unix.SYS_UNLINKAT: {Remove, 0, 1, false}, unix.SYS_RMDIR: {Remove, -1, 0, false},
	unix.SYS_RENAME: {Rename, -1, 1, false}, unix.SYS_RENAMEAT: {Rename, 2, 3, false}, unix.SYS_RENAMEAT2: {Rename, 2, 3, false},
	unix.SYS_LINK: {Link, -1, 1, false}, unix.SYS_LINKAT: {Link, 2, 3, false},
	unix.SYS_SYMLINK: {Link, -1, 1, false}, unix.SYS_SYMLINKAT: {Link, 1, 2, false},
	unix.SYS_MKDIR: {Create, -1, 0, false}, unix.SYS_MKDIRAT: {Create, 0, 1, false},
	unix.SYS_MKNOD: {Create, -1, 0, false}, unix.SYS_MKNODAT: {Create, 0, 1, false},
	unix.SYS_CHMOD: {Change, -1, 0, true}, unix.SYS_FCHMODAT: {Change, 0, 1, true}, unix.SYS_FCHMODAT2: {Change, 0, 1, true},
	unix.SYS_CHOWN: {Change, -1, 0, true}, unix.SYS_LCHOWN: {Change, -1, 0, false}, unix.SYS_FCHOWNAT: {Change, 0, 1, true},
	unix.SYS_UTIME: {Change, -1, 0, true}, unix.SYS_UTIMES: {Change, -1, 0, true}, unix.SYS_FUTIMESAT: {Change, 0, 1, true},
	unix.SYS_UTIMENSAT: {Change, 0, 1, true}, unix.SYS_SETXATTR: {Change, -1, 0, true}, unix.SYS_LSETXATTR: {Change, -1, 0, false},
	unix.SYS_REMOVEXATTR: {Change, -1, 0, true},
}

// attempted returns what a system call is about to do; nil if it does not matter.
func attempted(pid int, r *syscall.PtraceRegs) *attempt {
	args := [...]uint64{r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9}
	switch number := r.Orig_rax; number {
	case unix.SYS_OPEN:
		return opened(args[1], pid, args[0])
	case unix.SYS_OPENAT:
		return opened(args[2], pid, args[1])
	case unix.SYS_OPENAT2:
		how := memory(pid, args[2], 8)
		if len(how) < 8 {
			return nil
		}
		return opened(uint64(binary.LittleEndian.Uint32(how)), pid, args[1])
	case unix.SYS_CREAT:
		return &attempt{kind: Write, opens: true}
	case unix.SYS_FCHMOD, unix.SYS_FCHOWN, unix.SYS_FSETXATTR, unix.SYS_FTRUNCATE:
		return &attempt{kind: Change, path: linked(pid, fmt.Sprintf("fd/%d", int32(args[0])))}
	case unix.SYS_CONNECT:
		return connection(pid, args[1], args[2])
	case unix.SYS_SENDTO:
		return connection(pid, args[4], args[5])
	default:
		f, ok := forms[number]
		if !ok {
			return nil
		}
		folder := uint64(unix.AT_FDCWD & 0xffffffff)
		if f.folder >= 0 {
			folder = args[f.folder]
		}
		dir := folderOf(pid, folder)
		if args[f.path] == 0 { // utimensat of a descriptor
			return &attempt{kind: f.kind, path: dir}
		}
		a := &attempt{kind: f.kind, path: located(dir, text(pid, args[f.path]), f.follow)}
		switch number {
		case unix.SYS_RENAME:
			a.gone = located(dir, text(pid, args[0]), false)
		case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
			a.gone = located(folderOf(pid, args[0]), text(pid, args[1]), false)
		}
		return a
	}
}

// folderOf returns the folder that a descriptor stands for.
func folderOf(pid int, descriptor uint64) string {
	if int32(descriptor) == unix.AT_FDCWD {
		return linked(pid, "cwd")
	}
	return linked(pid, fmt.Sprintf("fd/%d", int32(descriptor)))
}

// opened tells opening for writing from opening for reading. A file of the system that is
// read, as each program does when it starts, does not matter.
func opened(flags uint64, pid int, name uint64) *attempt {
	switch {
	case flags&(unix.O_PATH|unix.O_DIRECTORY) != 0:
		return nil // which names there are is not recorded
	case flags&unix.O_ACCMODE != unix.O_RDONLY || flags&(unix.O_CREAT|unix.O_TRUNC) != 0:
		return &attempt{kind: Write, opens: true}
	}
	if path := text(pid, name); ofSystem(path) && !strings.Contains(path, "..") {
		return nil
	}
	return &attempt{kind: Read, opens: true}
}

// ofSystem reports whether a path is in a folder that no script can change.
func ofSystem(path string) bool {
	for _, dir := range []string{"/usr/", "/etc/", "/bin/", "/sbin/", "/lib/", "/lib64/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

// connection is set for an address of the internet.
func connection(pid int, at, size uint64) *attempt {
	raw := memory(pid, at, int(min(size, 28)))
	if len(raw) < 8 {
		return nil
	}
	port := uint16(raw[2])<<8 | uint16(raw[3])
	switch family := uint16(raw[0]) | uint16(raw[1])<<8; {
	case family == unix.AF_INET:
		return &attempt{kind: Connect, path: netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), port).String()}
	case family == unix.AF_INET6 && len(raw) >= 24:
		return &attempt{kind: Connect, path: netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])), port).String()}
	}
	return nil
}

// located returns the real path of a name, whose last element is followed or not.
func located(folder, name string, follow bool) string {
	if name == "" {
		return folder
	}
	if !filepath.IsAbs(name) {
		name = folder + "/" + name // as it is: the kernel follows links before dots
	}
	if follow {
		if real, err := filepath.EvalSymlinks(name); err == nil {
			return real
		}
	}
	for len(name) > 1 && name[len(name)-1] == '/' {
		name = name[:len(name)-1]
	}
	dir, base := filepath.Split(name)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return filepath.Join(real, base)
	}
	return filepath.Clean(name)
}

// executedName returns the name that the program of a process was started by: the kernel
// leaves it on the new stack, behind the arguments and the environment.
func executedName(pid int) string {
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(pid, &regs) != nil {
		return "" // it has ended
	}
	const (
		execName = 31 // AT_EXECFN
		most     = 1 << 18
	)
	var words []uint64
	for at := regs.Rsp; len(words) < most; {
		part := memory(pid, at, 4096-int(at%4096)) // a read ends at a page that is not there
		if len(part) == 0 {
			return ""
		}
		at += uint64(len(part))
		for ; len(part) >= 8; part = part[8:] {
			words = append(words, binary.LittleEndian.Uint64(part))
		}
		if name := auxiliary(words, execName); name != 0 {
			return text(pid, name)
		}
	}
	return ""
}

// auxiliary returns a value of the pairs on a new stack. They follow the number of
// arguments, the arguments, a zero, the environment and a zero.
func auxiliary(words []uint64, kind uint64) uint64 {
	for range 2 {
		end := slices.Index(words[min(1, len(words)):], 0)
		if end < 0 {
			return 0
		}
		words = words[end+1:]
	}
	for words = words[1:]; len(words) >= 2; words = words[2:] {
		if words[0] == kind {
			return words[1]
		}
	}
	return 0
}

func linked(pid int, what string) string {
	target, _ := os.Readlink(fmt.Sprintf("/proc/%d/%s", pid, what)) // "": the process has ended
	return target
}

// text reads a string of a process.
func text(pid int, at uint64) string {
	var all []byte
	for len(all) < unix.PathMax {
		size := 4096 - int(at%4096) // a read ends at a page that is not there
		part := memory(pid, at, size)
		if end := bytes.IndexByte(part, 0); end >= 0 {
			return string(append(all, part[:end]...))
		}
		if len(part) < size {
			break
		}
		all, at = append(all, part...), at+uint64(size)
	}
	return string(all)
}

// memory reads up to size bytes of a process.
func memory(pid int, at uint64, size int) []byte {
	if at == 0 || size <= 0 {
		return nil
	}
	buf := make([]byte, size)
	n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &buf[0], Len: uint64(size)}}, []unix.RemoteIovec{{Base: uintptr(at), Len: size}}, 0)
	if err != nil {
		return nil
	}
	return buf[:n]
}
