package record

import (
	"cmp"
	"slices"

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

const (
	report = uint32(unix.SECCOMP_RET_USER_NOTIF)
	allow  = uint32(unix.SECCOMP_RET_ALLOW)
)

// filter reports the system calls of a scope and allows all others. Those of another
// architecture have other numbers: they are allowed, and not recorded.
//
// The kernel runs a filter once for each number when it is laid on a process, to find those
// that are always allowed. So the numbers are searched, not tested one after the other.
func filter(scope Scope) []unix.SockFilter {
	wanted := slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return scope == Programs && c.does != execute })
	slices.SortFunc(wanted, func(a, b call) int { return cmp.Compare(a.number, b.number) })
	return slices.Concat([]unix.SockFilter{load(offsetArch), {Code: jump | unix.BPF_JEQ, K: auditArch, Jt: 1}, answer(allow), load(offsetNumber)}, search(wanted))
}

const jump = unix.BPF_JMP | unix.BPF_K

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func answer(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

// unless skips n instructions if the test of what was loaded fails.
func unless(test uint16, k uint32, n int) unix.SockFilter {
	return unix.SockFilter{Code: jump | test, K: k, Jf: uint8(n)} //nolint:gosec // checked by a test
}

// search answers for the calls of a sorted list, and allows others.
func search(list []call) (p []unix.SockFilter) {
	const few = 2
	if len(list) > few {
		half := len(list) / 2
		low, high := search(list[:half]), search(list[half:])
		p = append(p, unix.SockFilter{Code: jump | unix.BPF_JGE, K: uint32(list[half].number), Jt: uint8(len(low))}) //nolint:gosec // checked by a test
		return append(append(p, low...), high...)
	}
	for i := range list {
		one := list[i].answer()
		p = append(append(p, unless(unix.BPF_JEQ, uint32(list[i].number), len(one))), one...)
	}
	return append(p, answer(allow))
}

// answer reports a call; an open only if it can change something.
func (c *call) answer() []unix.SockFilter {
	if c.does != open || c.flags == none {
		return []unix.SockFilter{answer(report)}
	}
	return []unix.SockFilter{
		load(offsetArgument + 8*uint32(c.flags)), //nolint:gosec // not negative here
		unless(unix.BPF_JSET, unix.O_PATH, 1),    // it opens a place, whatever else it says
		answer(allow),
		unless(unix.BPF_JSET, writes, 1),
		answer(report),
		answer(allow),
	}
}
