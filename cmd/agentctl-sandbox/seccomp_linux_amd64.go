package main

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// x32 is the bit of the x32 ABI in a number, which has calls of its own.
	x32 = 0x40000000
)

// forbiddenHere exist on this architecture only.
var forbiddenHere = []uintptr{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE, unix.SYS_NFSSERVCTL, unix.SYS_SYSFS, unix.SYS_USTAT}

// modeCallsHere are those of modeCalls that exist on this architecture only.
var modeCallsHere = []modeCall{
	{number: unix.SYS_OPEN, mode: 2, flags: 1, refused: setIDs},
	{number: unix.SYS_CREAT, mode: 1, refused: setIDs},
	{number: unix.SYS_CHMOD, mode: 1, refused: setIDs},
	{number: unix.SYS_MKNOD, mode: 1, refused: setIDs | device},
}
