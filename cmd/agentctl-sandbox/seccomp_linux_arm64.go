package main

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32       = 0 // there is none
)

// forbiddenHere exist on this architecture only.
var forbiddenHere = []uintptr{unix.SYS_NFSSERVCTL}

// modeCallsHere exist on this architecture only.
var modeCallsHere []modeCall
