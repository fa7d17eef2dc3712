package main

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32       = 0 // arm64 does not have it
)

// forbiddenHere exist on this architecture only.
var forbiddenHere = []uintptr{unix.SYS_NFSSERVCTL}

// modeCallsHere exist on this architecture only.
var modeCallsHere []modeCall
