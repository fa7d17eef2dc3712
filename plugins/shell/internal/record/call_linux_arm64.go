package record

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// callsHere are those of calls that exist on this architecture only.
var callsHere []call
