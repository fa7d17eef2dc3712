package main

import (
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in the kernel's struct seccomp_data.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArg0   = 16
	offsetArg1   = 24
)

// argument is the offset of the low half of an argument of a call.
func argument(n uint32) uint32 { return offsetArg0 + 8*n }

// modeCall is a system call that sets the mode of a file.
type modeCall struct {
	number uintptr
	// mode is the argument that holds the mode.
	mode uint32
	// flags is the argument that holds the flags of a call that sets a mode only if
	// it creates a file; 0 means that the call always sets it.
	flags uint32
	// refused are the bits that the mode must not have.
	refused uint32
}

const (
	// setIDs are the setuid and the setgid bit. Files of the workspace are on
	// the host, where such a program would run as its owner for every user. The
	// nosuid mount of the sandbox has no effect there.
	setIDs = unix.S_ISUID | unix.S_ISGID
	// device is the bit that S_IFCHR and S_IFBLK have and S_IFREG, S_IFIFO and
	// S_IFSOCK lack. The kernel requires CAP_MKNOD for devices, except for
	// whiteouts.
	device = unix.S_IFCHR
	// creates are O_CREAT and the bit of O_TMPFILE that it shares with no other flag.
	creates = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// modeCalls are all calls that set a mode. mkdir and mkdirat are not among them:
// the kernel ignores these bits there. openat2 and the calls of io_uring keep the
// mode in memory, which a filter cannot read: they are refused as a whole.
var modeCalls = append([]modeCall{
	{number: unix.SYS_OPENAT, mode: 3, flags: 2, refused: setIDs},
	{number: unix.SYS_FCHMOD, mode: 1, refused: setIDs},
	{number: unix.SYS_FCHMODAT, mode: 2, refused: setIDs},
	{number: unix.SYS_FCHMODAT2, mode: 2, refused: setIDs},
	{number: unix.SYS_MKNODAT, mode: 2, refused: setIDs | device},
}, modeCallsHere...)

// forbidden are the system calls that no program needs and every way out begins
// with: mounts, namespaces, tracing, keys, other forms of the kernel's surface.
// io_uring opens sockets without the call socket.
var forbidden = append([]uintptr{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_FANOTIFY_INIT, unix.SYS_KCMP, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_VHANGUP, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}, forbiddenHere...)

// families are the only socket families that a program may use. Netlink,
// packets and vsock, which is not bound to a network namespace, are not among
// them.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6}

const (
	allow       = unix.SECCOMP_RET_ALLOW
	deny        = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	missing     = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	unsupported = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	kill        = unix.SECCOMP_RET_KILL_PROCESS
	exhausted   = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOMEM)

	// newNamespaces are the flags of clone that make namespaces.
	newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
)

// program is a filter in the making.
type program []unix.SockFilter

func (p *program) load(offset uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (p *program) ret(k uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k})
}

// jump skips n instructions when the test of what was loaded fails.
func (p *program) jump(test uint16, k uint32, n int) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jf: uint8(n)})
}

// skip skips n instructions when the test of what was loaded succeeds.
func (p *program) skip(test uint16, k uint32, n int) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jt: uint8(n)})
}

// when returns k for a system call number.
func (p *program) when(number uintptr, k uint32) {
	p.jump(unix.BPF_JEQ, uint32(number), 1)
	p.ret(k)
}

// modes denies a call that sets bits which the mode must not have, and allows the
// others of that number.
func (p *program) modes(c modeCall) {
	n := 4
	if c.flags != 0 {
		n += 3
	}
	p.jump(unix.BPF_JEQ, uint32(c.number), n)
	if c.flags != 0 {
		p.load(argument(c.flags))
		p.skip(unix.BPF_JSET, creates, 1)
		p.ret(allow)
	}
	p.load(argument(c.mode))
	p.jump(unix.BPF_JSET, c.refused, 1)
	p.ret(deny)
	p.ret(allow)
}

// largestSegment is the size of a SysV segment that programs may make where memory
// is bounded without a cgroup. Databases use one of this size as a lock.
const largestSegment = 4096

// unshared refuses memory that no limit of a process counts: SysV segments and
// queues, memfds, and anonymous memory that is shared. Files in /dev/shm and /tmp
// have the bound of their file system.
func (p *program) unshared() {
	p.jump(unix.BPF_JEQ, unix.SYS_MMAP, 5)
	p.load(argument(3))
	p.jump(unix.BPF_JSET, unix.MAP_ANONYMOUS, 2)
	p.jump(unix.BPF_JSET, unix.MAP_SHARED, 1) // MAP_SHARED_VALIDATE has its bit as well, MAP_PRIVATE has not
	p.ret(exhausted)
	p.ret(allow)
	p.jump(unix.BPF_JEQ, unix.SYS_SHMGET, 7)
	p.load(argument(1) + 4)
	p.skip(unix.BPF_JEQ, 0, 1)
	p.ret(exhausted)
	p.load(argument(1))
	p.jump(unix.BPF_JGT, largestSegment, 1)
	p.ret(exhausted)
	p.ret(allow)
	for _, number := range []uintptr{unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_MSGGET} {
		p.when(number, missing)
	}
}

// filter is the seccomp filter of every program. With bounded it refuses memory
// that the limits of a process do not count.
func filter(bounded bool) program {
	var p program
	// A foreign architecture has other numbers, and would pass unjudged.
	p.load(offsetArch)
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: auditArch, Jt: 1})
	p.ret(kill)
	p.load(offsetNumber)
	if x32 != 0 {
		p.jump(unix.BPF_JGE, x32, 1)
		p.ret(kill)
	}
	for _, c := range modeCalls { // first: open is the most frequent call
		p.modes(c)
	}
	if bounded {
		p.unshared()
	}
	// The flags of these are in memory, which a filter cannot read; programs fall
	// back to clone and openat.
	p.when(unix.SYS_CLONE3, missing)
	p.when(unix.SYS_OPENAT2, missing)
	for _, number := range forbidden {
		p.when(number, deny)
	}
	p.jump(unix.BPF_JEQ, unix.SYS_CLONE, 4)
	p.load(offsetArg0)
	p.jump(unix.BPF_JSET, newNamespaces, 1)
	p.ret(deny)
	p.ret(allow)
	// A pair is made of two sockets before its family is asked whether it has pairs.
	for _, number := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		p.jump(unix.BPF_JEQ, number, 1+2*len(families)+1)
		p.load(offsetArg0)
		for _, f := range families {
			p.jump(unix.BPF_JEQ, f, 1)
			p.ret(allow)
		}
		p.ret(unsupported)
	}
	// Pushing input into a terminal; there is no terminal, but the rule costs
	// nothing.
	p.jump(unix.BPF_JEQ, unix.SYS_IOCTL, 5)
	p.load(offsetArg1)
	p.jump(unix.BPF_JEQ, unix.TIOCSTI, 1)
	p.ret(deny)
	p.jump(unix.BPF_JEQ, tioclinux, 1)
	p.ret(deny)
	p.ret(allow)
	return p
}

// tioclinux is TIOCLINUX, which pastes into a console.
const tioclinux = 0x541c

// seal lays the filter on this thread.
func seal(bounded bool) error {
	p := filter(bounded)
	if len(p) > math.MaxUint16 {
		return fmt.Errorf("a seccomp filter of %d instructions", len(p))
	}
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))) //nolint:gosec // the kernel's structure
	if errno != 0 {
		return fmt.Errorf("load the seccomp filter: %w", errno)
	}
	return nil
}
