package main

import (
	"testing"

	"golang.org/x/sys/unix"
)

// judge runs the filter as the kernel would.
func judge(t *testing.T, p program, arch, number uint32, args ...uint32) uint32 {
	t.Helper()
	data := map[uint32]uint32{offsetNumber: number, offsetArch: arch}
	for i, a := range args {
		data[offsetArg0+8*uint32(i)] = a
	}
	var acc uint32
	for at := 0; at < len(p); at++ {
		in := p[at]
		jump := func(ok bool) {
			if ok {
				at += int(in.Jt)
			} else {
				at += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = data[in.K]
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(acc == in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(acc >= in.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(acc > in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(acc&in.K != 0)
		default:
			t.Fatalf("instruction %d: unknown code %#x", at, in.Code)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

func TestTheFilterJudgesEachCall(t *testing.T) {
	p := filter(false)
	for name, c := range map[string]struct {
		number uint32
		args   []uint32
		want   uint32
	}{
		"an ordinary call":      {unix.SYS_READ, nil, allow},
		"the last of the list":  {unix.SYS_SETDOMAINNAME, nil, deny},
		"the first of the list": {unix.SYS_MOUNT, nil, deny},
		"io_uring":              {unix.SYS_IO_URING_SETUP, nil, deny},
		"clone3":                {unix.SYS_CLONE3, nil, missing},
		"a thread":              {unix.SYS_CLONE, []uint32{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, allow},
		"a process":             {unix.SYS_CLONE, []uint32{uint32(unix.SIGCHLD)}, allow},
		"a user namespace":      {unix.SYS_CLONE, []uint32{unix.CLONE_NEWUSER | uint32(unix.SIGCHLD)}, deny},
		"a net namespace":       {unix.SYS_CLONE, []uint32{unix.CLONE_NEWNET}, deny},
		"a unix socket":         {unix.SYS_SOCKET, []uint32{unix.AF_UNIX}, allow},
		"an IPv4 socket":        {unix.SYS_SOCKET, []uint32{unix.AF_INET}, allow},
		"an IPv6 socket":        {unix.SYS_SOCKET, []uint32{unix.AF_INET6}, allow},
		"a netlink socket":      {unix.SYS_SOCKET, []uint32{unix.AF_NETLINK}, unsupported},
		"a pair":                {unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX}, allow},
		"a pair of tipc":        {unix.SYS_SOCKETPAIR, []uint32{unix.AF_TIPC}, unsupported},
		"a vsock socket":        {unix.SYS_SOCKET, []uint32{unix.AF_VSOCK}, unsupported},
		"a packet socket":       {unix.SYS_SOCKET, []uint32{unix.AF_PACKET}, unsupported},
		"family 0":              {unix.SYS_SOCKET, []uint32{0}, unsupported},
		"an ordinary ioctl":     {unix.SYS_IOCTL, []uint32{1, unix.TCGETS}, allow},
		"typing for somebody":   {unix.SYS_IOCTL, []uint32{1, unix.TIOCSTI}, deny},
		"pasting":               {unix.SYS_IOCTL, []uint32{1, tioclinux}, deny},
		"a socket as argument":  {unix.SYS_CONNECT, []uint32{unix.AF_VSOCK}, allow},
		"openat2":               {unix.SYS_OPENAT2, nil, missing},
		"an ordinary mode":      {unix.SYS_FCHMOD, []uint32{3, 0o755}, allow},
		"a sticky folder":       {unix.SYS_FCHMODAT, []uint32{0, 0, 0o1777}, allow},
		"setuid":                {unix.SYS_FCHMOD, []uint32{3, 0o4755}, deny},
		"setgid":                {unix.SYS_FCHMODAT, []uint32{0, 0, 0o2755}, deny},
		"both, the newer call":  {unix.SYS_FCHMODAT2, []uint32{0, 0, 0o6755, 0}, deny},
		"a new file":            {unix.SYS_OPENAT, []uint32{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o644}, allow},
		"a new setuid file":     {unix.SYS_OPENAT, []uint32{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o4755}, deny},
		"a nameless setgid one": {unix.SYS_OPENAT, []uint32{0, 0, unix.O_TMPFILE | unix.O_WRONLY, 0o2755}, deny},
		"no mode, stale bits":   {unix.SYS_OPENAT, []uint32{0, 0, unix.O_RDONLY | unix.O_DIRECTORY, 0o6755}, allow},
		"a fifo":                {unix.SYS_MKNODAT, []uint32{0, 0, unix.S_IFIFO | 0o600}, allow},
		"a socket file":         {unix.SYS_MKNODAT, []uint32{0, 0, unix.S_IFSOCK | 0o600}, allow},
		"an empty file":         {unix.SYS_MKNODAT, []uint32{0, 0, unix.S_IFREG | 0o600}, allow},
		"an empty setuid file":  {unix.SYS_MKNODAT, []uint32{0, 0, unix.S_IFREG | 0o4700}, deny},
		"a character device":    {unix.SYS_MKNODAT, []uint32{0, 0, unix.S_IFCHR | 0o600}, deny},
		"a block device":        {unix.SYS_MKNODAT, []uint32{0, 0, unix.S_IFBLK | 0o600}, deny},
	} {
		if got := judge(t, p, auditArch, c.number, c.args...); got != c.want {
			t.Errorf("%s: %#x, want %#x", name, got, c.want)
		}
	}
	for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
		if got := judge(t, p, arch, unix.SYS_READ); got != kill {
			t.Errorf("architecture %#x: %#x, want the process killed", arch, got)
		}
	}
	if x32 != 0 {
		if got := judge(t, p, auditArch, x32|unix.SYS_READ); got != kill {
			t.Errorf("x32: %#x, want the process killed", got)
		}
	}
	for _, c := range modeCalls {
		args := make([]uint32, 6)
		if c.flags != 0 {
			args[c.flags] = unix.O_CREAT
		}
		for mode, want := range map[uint32]uint32{0o777: allow, 0o4755: deny, 0o2755: deny, unix.S_IFREG | 0o6700: deny} {
			args[c.mode] = mode
			if got := judge(t, p, auditArch, uint32(c.number), args...); got != want {
				t.Errorf("call %d with mode %#o: %#x, want %#x", c.number, mode, got, want)
			}
		}
	}
	for _, number := range forbidden {
		if got := judge(t, p, auditArch, uint32(number)); got != deny {
			t.Errorf("call %d: %#x, want it denied", number, got)
		}
	}
}

func TestMemoryThatNoLimitCountsIsRefusedWhereThereIsALimit(t *testing.T) {
	free, bounded := filter(false), filter(true)
	for name, c := range map[string]struct {
		number uint32
		args   []uint32
		want   uint32
	}{
		"private memory":      {unix.SYS_MMAP, []uint32{0, 1 << 30, 3, unix.MAP_ANONYMOUS | unix.MAP_PRIVATE}, allow},
		"a file":              {unix.SYS_MMAP, []uint32{0, 1 << 30, 3, unix.MAP_SHARED, 5}, allow},
		"shared memory":       {unix.SYS_MMAP, []uint32{0, 4096, 3, unix.MAP_ANONYMOUS | unix.MAP_SHARED}, exhausted},
		"validated":           {unix.SYS_MMAP, []uint32{0, 4096, 3, unix.MAP_ANONYMOUS | unix.MAP_SHARED_VALIDATE}, exhausted},
		"a small segment":     {unix.SYS_SHMGET, []uint32{0, largestSegment, 0}, allow},
		"a segment":           {unix.SYS_SHMGET, []uint32{0, largestSegment + 1, 0}, exhausted},
		"a memfd":             {unix.SYS_MEMFD_CREATE, nil, missing},
		"a message queue":     {unix.SYS_MSGGET, nil, missing},
		"a setuid file":       {unix.SYS_FCHMOD, []uint32{3, 0o4755}, deny},
		"an ordinary call":    {unix.SYS_READ, nil, allow},
		"the end of the list": {unix.SYS_SETDOMAINNAME, nil, deny},
	} {
		if got := judge(t, bounded, auditArch, c.number, c.args...); got != c.want {
			t.Errorf("%s: %#x, want %#x", name, got, c.want)
		}
		if got := judge(t, free, auditArch, c.number, c.args...); c.want != deny && got != allow {
			t.Errorf("%s without a limit: %#x, want it allowed", name, got)
		}
	}
}
