package record

import (
	"golang.org/x/sys/unix"
)

// Scope is what a filter has the kernel report.
type Scope int

// The scopes.
const (
	// Programs reports only what is executed.
	Programs Scope = iota + 1
	// Everything also reports changes of files, and connections.
	Everything
)

// Offsets in the kernel's struct seccomp_data.
const (
	offsetNumber   = 0
	offsetArch     = 4
	offsetArgument = 16
)

// writes are the flags of an open that can change something.
const writes = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC

// filter reports the system calls of a scope and allows all others. Those of another
// architecture have other numbers: they are allowed, and not recorded.
func filter(scope Scope) []unix.SockFilter {
	const (
		report = uint32(unix.SECCOMP_RET_USER_NOTIF)
		allow  = uint32(unix.SECCOMP_RET_ALLOW)
	)
	var p []unix.SockFilter
	load := func(offset uint32) {
		p = append(p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
	}
	// unless skips n instructions if the test of what was loaded fails.
	unless := func(test uint16, k uint32, n uint8) {
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jf: n})
	}
	answer := func(k uint32) { p = append(p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}) }
	load(offsetArch)
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: auditArch, Jt: 1})
	answer(allow)
	load(offsetNumber)
	for i := range calls {
		c := &calls[i]
		switch {
		case scope == Programs && c.does != execute:
		case c.does == open && c.flags >= 0:
			unless(unix.BPF_JEQ, uint32(c.number), 6)
			load(offsetArgument + 8*uint32(c.flags)) //nolint:gosec // not negative here
			unless(unix.BPF_JSET, unix.O_PATH, 1)    // it opens a place, whatever else it says
			answer(allow)
			unless(unix.BPF_JSET, writes, 1)
			answer(report)
			answer(allow)
		default:
			unless(unix.BPF_JEQ, uint32(c.number), 1)
			answer(report)
		}
	}
	answer(allow)
	return p
}
