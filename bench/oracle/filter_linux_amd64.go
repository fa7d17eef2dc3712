package main

import (
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filterCalls makes the system calls that matter stop for the tracer in every process that
// this thread starts; the others run at full speed. The thread is not traced, so those
// calls fail in it. A start of a program does not stop: the kernel reports it when it has
// succeeded.
func filterCalls() error {
	numbers := append(slices.Collect(maps.Keys(forms)), unix.SYS_OPEN, unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_CREAT,
		unix.SYS_FCHMOD, unix.SYS_FCHOWN, unix.SYS_FSETXATTR, unix.SYS_FTRUNCATE, unix.SYS_CONNECT, unix.SYS_SENDTO)
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	skipUnless := func(value uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: 1}
	}
	answer := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	const number, architecture = 0, 4 // offsets in struct seccomp_data
	program := []unix.SockFilter{
		load(architecture),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AUDIT_ARCH_X86_64, Jt: 1},
		answer(unix.SECCOMP_RET_KILL_PROCESS), // its numbers mean other calls
		load(number),
	}
	for _, n := range numbers {
		program = append(program, skipUnless(uint32(n)), answer(unix.SECCOMP_RET_TRACE))
	}
	program = append(program, answer(unix.SECCOMP_RET_ALLOW))
	list := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&list))); err != 0 {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}
