package main

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32       = 0 // there is none
)

// forbiddenHere exist on this architecture only.
var forbiddenHere = []uintptr{unix.SYS_NFSSERVCTL}

// elfMachine is this architecture in the header of a program.
const elfMachine = 183

// modeCallsHere exist on this architecture only.
var modeCallsHere []modeCall
