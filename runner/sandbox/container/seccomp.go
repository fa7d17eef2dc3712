package container

import (
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/contrib/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// modeArgs are the system calls that set a file's mode, and by which argument.
var modeArgs = []callArg{
	{"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"fchmodat2", 2}, {"mknod", 1}, {"mknodat", 2}, {"creat", 1}, {"open", 2}, {"openat", 3},
}

// flagArgs are those of them that set a mode only with a certain flag.
var flagArgs = []callArg{{"open", 1}, {"openat", 2}}

type callArg struct {
	name string
	arg  uint
}

const (
	setIDs  = 0o6000              // setuid and setgid
	devices = 0o020000            // a bit that the types of devices have, whiteouts included, and those of files, pipes and sockets lack
	creates = 0o100 | 0o020000000 // O_CREAT and the bit of O_TMPFILE that is its own
	enosys  = 38
)

// families are the sockets a program may have. Netlink, packets, and above all
// vsock, which leads past every network namespace, are not among them.
var families = []uint64{1, 2, 10} // AF_UNIX, AF_INET, AF_INET6

// never are calls that the default list allows and a contained program does not
// need: most of them access other processes, among them the container's process
// 1.
var never = []string{"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp", "socketcall"}

// profile is containerd's default list of system calls for the capabilities
// that the spec has by now. It is stricter in four ways: no foreign system
// calls, no unusual sockets, no access to other programs, and no creation of
// setuid files and whiteouts. Otherwise a workspace that is root's on the host
// would get a way to root.
func profile(s *specs.Spec) *specs.LinuxSeccomp {
	p := seccomp.DefaultProfile(s)
	p.Architectures = p.Architectures[:min(len(p.Architectures), 1)] // the native one comes first
	for i := range p.Syscalls {
		p.Syscalls[i].Names = slices.DeleteFunc(slices.Clone(p.Syscalls[i].Names), func(name string) bool {
			return name == "socket" || slices.Contains(never, name) ||
				name == "openat2" || // its mode is in memory, where no filter sees it
				slices.ContainsFunc(modeArgs, func(c callArg) bool { return c.name == name })
		})
	}
	p.Syscalls = slices.DeleteFunc(p.Syscalls, func(s specs.LinuxSyscall) bool { return len(s.Names) == 0 })
	for _, c := range modeArgs {
		bits := uint64(setIDs)
		if strings.HasPrefix(c.name, "mknod") {
			bits |= devices
		}
		p.Syscalls = append(p.Syscalls, c.without(bits))
	}
	for _, c := range flagArgs {
		p.Syscalls = append(p.Syscalls, c.without(creates))
	}
	for _, f := range families {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{
			Names: []string{"socket"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: f, Op: specs.OpEqualTo}},
		})
	}
	code := uint(enosys) // programs then do without
	p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{"openat2"}, Action: specs.ActErrno, ErrnoRet: &code})
	return p
}

// without allows a call whose argument has none of the bits.
func (c callArg) without(bits uint64) specs.LinuxSyscall {
	return specs.LinuxSyscall{
		Names: []string{c.name}, Action: specs.ActAllow,
		Args: []specs.LinuxSeccompArg{{Index: c.arg, Value: bits, ValueTwo: 0, Op: specs.OpMaskedEqual}},
	}
}
